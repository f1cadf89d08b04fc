"""The HTML report in Chromium: opened from disk, read by mouse and by keyboard."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import browser as browsers
import html_reports
import pytest

browsers.needs_browser()

from selenium.webdriver.common.keys import Keys  # noqa: E402

from pytest_tfdevice.reports.html import page  # noqa: E402
from pytest_tfdevice.serial.run_report import RunReport  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, by name."""
    folder = tmp_path_factory.mktemp("pages")
    for name in ("small", "hostile", "large"):
        report = getattr(html_reports, name)()
        (folder / f"{name}.html").write_text(page(report), encoding="utf-8")
    (folder / "empty.html").write_text(page(RunReport("2.21.0", "3.13.5")), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def running() -> Iterator[browsers.Browser]:
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture
def browser(running: browsers.Browser) -> Iterator[browsers.Browser]:
    running.resize(1400, 1000)
    running.emulate(prefers_color_scheme="light")
    yield running
    assert running.errors == []


@pytest.fixture
def small(browser: browsers.Browser, folder: Path) -> browsers.Browser:
    browser.open(folder / "small.html")
    return browser


def operations(browser: browsers.Browser) -> list[str]:
    """The paths in the table of operations, from the top."""
    script = """return [...document.querySelectorAll('#operations .rows .row')]
        .sort((a, b) => a.dataset.index - b.dataset.index)
        .map(row => row.querySelector('.c-path').textContent)"""
    found: list[str] = browser.run(script)
    return found


def one_line(text: str) -> str:
    return " ".join(text.split())


def type_filter(browser: browsers.Browser, text: str) -> None:
    field = browser.one("#filter")
    field.clear()
    field.send_keys(text)


def tiles(browser: browsers.Browser) -> dict[str, str]:
    """What the map says of each tile, by its name."""
    names = [t.get_attribute("aria-label") or "" for t in browser.all(".map .tile.leads")]
    return {name.split()[0]: name for name in names}


# --- opening --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small", "hostile", "large", "empty"])
def test_it_opens_from_disk_and_asks_for_nothing(
    browser: browsers.Browser, folder: Path, name: str
) -> None:
    browser.open(folder / f"{name}.html")
    assert browser.requests == [(folder / f"{name}.html").as_uri()]
    assert browser.errors == []


def test_the_conclusion_comes_first(small: browsers.Browser) -> None:
    assert small.text("h1") == "1 of 2 judged tests left the device; 1 failed against the baseline"
    facts = one_line(small.text("#facts"))
    assert "TensorFlow 2.21.0" in facts
    assert "Python 3.13.5" in facts
    assert re.search(r"GPU:0 Simulated GPU, 16 GiB simulated", facts)


def test_a_run_that_watched_nothing_says_what_to_do(
    browser: browsers.Browser, folder: Path
) -> None:
    browser.open(folder / "empty.html")
    assert browser.text("h1") == "No test was watched"
    assert "--tfdevice-watch" in browser.text("#body")


# --- the tests of the run -------------------------------------------------------------------


def test_what_failed_is_open(small: browsers.Browser) -> None:
    assert small.text("#test h2") == "test_step[a]"
    assert small.text("#test .module") == "tests/test_model.py::TestStep"
    assert "2 of 9 are off" in small.text("#test .summary")
    assert "77.8 % of the 9 operations that count ran on GPU" in small.text("#test")
    assert "GPU:0 7 (70 %)" in one_line(small.text("#test .spread"))


def test_a_test_is_chosen_by_keyboard(small: browsers.Browser) -> None:
    small.one("#test-filter").send_keys(Keys.ARROW_DOWN)
    small.press(Keys.END)
    assert small.text("#test h2") == "test_fine"
    small.press(Keys.HOME)
    assert small.text("#test h2") == "test_step[a]"


def test_tests_are_filtered_by_name_and_outcome(small: browsers.Browser) -> None:
    small.one("#test-filter").send_keys("fine")
    assert small.texts(".test .test-name") == ["test_fine"]
    small.one("#test-filter").clear()
    small.one("#only-failed").click()
    assert small.texts(".test .test-name") == ["test_step[a]"]


def test_an_address_names_a_test(browser: browsers.Browser, folder: Path) -> None:
    browser.open(folder / "small.html", "#test=tests%2Ftest_other.py%3A%3Atest_fine")
    assert browser.text("#test h2") == "test_fine"
    assert "test_fine" in browser.text(".test[aria-selected='true']")


# --- the table of operations ----------------------------------------------------------------


def test_what_is_off_its_device_comes_first(small: browsers.Browser) -> None:
    assert operations(small)[:2] == ["net/block1/mask/MatMul", "net/block2/Where"]
    assert small.text("#test .counted") == "10 of 10 operations"
    first = small.one("#operations .rows .row")
    assert first.text.split() == [
        "net/block1/mask/", "MatMul", "MatMul", "CPU:0", "dtype", "mask.py:3", "1",
    ]  # fmt: skip


MATMULS = ("block1/mask", "block1/dense", "block2/dense")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("type:matmul", {f"net/{s}/MatMul" for s in MATMULS}),
        ("type:matmul device:cpu", {"net/block1/mask/MatMul"}),
        ("reason:requested", {"net/block2/Where"}),
        ("scope:block2 -type:matmul", {"net/block2/dense/Relu", "net/block2/Where"}),
        ("source:mask.py -device:GPU", {"net/block1/mask/MatMul", "net/block2/Where"}),
        ("name:net/*/dense/B*", {"net/block1/dense/BiasAdd"}),
        ("adam", {"optimizer/Shape", "optimizer/AssignSubVariableOp", "optimizer/Mul"}),
        ('"dense/Relu"', {"net/block2/dense/Relu"}),
        ("nothing:like this", set()),
        ("type:[", set()),
        ("constructor:x", set()),
        ("/src/mask.py", {"net/block1/mask/MatMul", "net/block1/mask/Cast", "net/block2/Where"}),
    ],
)  # fmt: skip
def test_operations_are_filtered(small: browsers.Browser, query: str, found: set[str]) -> None:
    type_filter(small, query)
    assert set(operations(small)) == found
    assert small.text("#test .counted") == f"{len(found)} of 10 operations"


def test_only_what_is_off_is_shown_on_demand(small: browsers.Browser) -> None:
    assert small.texts(".choices label") == ["All 10", "That count 9", "Off GPU 2"]
    small.one(".choices input[value='off']").click()
    assert operations(small) == ["net/block1/mask/MatMul", "net/block2/Where"]
    small.press(Keys.ARROW_LEFT)
    assert len(operations(small)) == 9
    assert "optimizer/Shape" not in operations(small)


def test_columns_sort_up_and_down_and_back(small: browsers.Browser) -> None:
    before = operations(small)
    head = small.one("#operations [data-column='path']")
    button = head.find_element("css selector", "button")
    button.send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "ascending"
    assert operations(small) == sorted(before, key=str.lower)
    button.send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "descending"
    assert operations(small) == sorted(before, key=str.lower, reverse=True)
    button.send_keys(Keys.ENTER)
    assert head.get_attribute("aria-sort") == "none"
    assert operations(small) == before


def test_an_operation_is_opened_by_keyboard(small: browsers.Browser) -> None:
    small.one("#filter").send_keys("Where", Keys.ARROW_DOWN)
    assert small.focused() == "operations"
    small.press(Keys.ENTER)
    details = small.text("#details")
    for fact in (
        "net/block2/Where",
        "not on GPU",
        "counts (makes float32)",
        "requested-elsewhere",
        "tf.device('/CPU:0')",
        "take the tf.device out",
        "/src/mask.py:9",
    ):
        assert fact in details


def test_a_reason_filters_the_table(small: browsers.Browser) -> None:
    reasons = small.all(".reasons button")
    assert [one_line(r.text) for r in reasons] == [
        "dtype 1 operation",
        "requested-elsewhere 1 operation",
    ]
    assert small.texts(".mend") == [
        "To mend it: cast to float32",
        "To mend it: take the tf.device out",
    ]
    reasons[1].click()
    assert operations(small) == ["net/block2/Where"]
    assert small.one("#filter").get_attribute("value") == "reason:requested-elsewhere"


# --- the map --------------------------------------------------------------------------------


def test_the_map_shows_scopes_with_their_devices(small: browsers.Browser) -> None:
    found = tiles(small)
    assert set(found) == {"net/", "optimizer/"}
    assert found["net/"] == (
        "net/ 7, 2 off. 71.4 % on GPU:0, 28.6 % on CPU:0 (off its device). Opens the scope."
    )
    assert found["optimizer/"].startswith("optimizer/ 2. 100 % on GPU:0")


def test_the_area_is_that_of_the_operations(small: browsers.Browser) -> None:
    def areas() -> dict[str, float]:
        return {
            t.get_attribute("aria-label").split()[0]: t.size["width"] * t.size["height"]
            for t in small.all(".map .tile.leads")
        }

    counting = areas()
    assert counting["net/"] / counting["optimizer/"] == pytest.approx(7 / 2, rel=0.05)
    small.one("#measure").send_keys("all")
    everything = areas()
    assert everything["net/"] / everything["optimizer/"] == pytest.approx(7 / 3, rel=0.05)


def test_the_map_is_walked_by_keyboard_and_the_table_follows(small: browsers.Browser) -> None:
    small.run("document.querySelector('.map .tile.leads').focus()")
    small.press(Keys.ENTER)
    assert set(tiles(small)) == {"block1/", "block2/"}
    assert small.text(".crumbs").replace("\n", "") == "all scopes/net"
    assert small.text("#test .counted") == "7 of 10 operations in net"
    assert str(small.focused("aria-label")).startswith("block")
    before = small.focused("aria-label")
    small.press(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert small.focused("aria-label") != before
    small.press(Keys.ENTER)
    inside = small.text("#test .counted")
    assert inside in ("4 of 10 operations in net/block1", "3 of 10 operations in net/block2")
    small.press(Keys.ESCAPE)
    assert small.text("#test .counted") == "7 of 10 operations in net"
    small.press(Keys.BACKSPACE)
    assert small.text("#test .counted") == "10 of 10 operations"
    assert str(small.focused("aria-label")).startswith("net/ 7")


def test_the_way_up_is_shown(small: browsers.Browser) -> None:
    small.one(".map .tile.leads").click()
    small.one(".crumbs button").click()
    assert set(tiles(small)) == {"net/", "optimizer/"}


def test_a_type_in_a_scope_filters_the_table(small: browsers.Browser) -> None:
    next(t for t in small.all(".tile") if t.get_attribute("aria-label").startswith("opt")).click()
    next(t for t in small.all(".tile") if t.get_attribute("aria-label").startswith("Mul")).click()
    assert operations(small) == ["optimizer/Mul"]


# --- figures --------------------------------------------------------------------------------


def test_memory_and_transfers(small: browsers.Browser) -> None:
    text = one_line(small.text("[aria-labelledby='amounts-title']"))
    assert "GPU:0 peak 3 GiB of 16 GiB (18.8 %)" in text
    assert "held before 1 GiB · taken by this test 2 GiB · held after 1 GiB" in text
    assert "14 transfers between host and device in a step, 2 MiB" in text
    assert cells(small, "#transfers") == [
        ["net/block1/mask/MatMul:0", "CPU:0", "GPU:0", "float32[512, 1024]", "2 MiB", "1", ""],
        ["small:0", "GPU:0", "CPU:0", "int32[2]", "8 bytes", "1", "mask.py:4"],
    ]


def cells(browser: browsers.Browser, grid: str) -> list[list[str]]:
    """The texts of a table without its head."""
    script = """return [...document.querySelectorAll(arguments[0] + ' .rows .row')]
        .map(row => [...row.children].map(cell => cell.textContent))"""
    found: list[list[str]] = browser.run(script, grid)
    return found


def test_the_baseline_and_this_run_stand_side_by_side(small: browsers.Browser) -> None:
    text = one_line(small.text("[aria-labelledby='baseline-0']"))
    assert "failed compared with the baseline: base.json, simulated GPU" in text
    heads = small.texts("#changes .head .cell")
    assert heads == ["Operations", "Baseline", "This run", "Change"]
    assert cells(small, "#changes") == [
        ["net/block1/mask/MatMul", "GPU:0", "CPU:0", "left its device (dtype)"],
        ["net/block2/Where", "not there", "CPU:0", "new, and off its device (requested-elsewhere)"],
        ["net/block3/Relu × 4", "GPU:0", "not there", "gone"],
    ]


def test_a_test_without_figures_has_no_section_for_them(small: browsers.Browser) -> None:
    small.one("#test-filter").send_keys(Keys.ARROW_DOWN)
    small.press(Keys.END)
    assert small.texts("#test h3") == ["Map of the model", "Operations"]


def test_each_marker_and_the_failure_are_shown(small: browsers.Browser) -> None:
    assert [one_line(text) for text in small.texts(".checks li")] == [
        "✕ failed on_gpu() 2 of 9 are off",
        "✓ passed gpu_memory('4 GiB') 3 GiB at most",
    ]
    assert "tests/test_model.py:42 · pytest: failed" in small.text("#test")
    small.one("#test .remarks summary").click()
    assert small.text("#test pre") == "2 of 9 are off\n  MatMul  <b>CPU:0</b>"


def test_what_else_there_is_to_know_of_the_run(browser: browsers.Browser, folder: Path) -> None:
    browser.open(folder / "small.html")
    assert "tests run 7" in one_line(browser.text("#facts"))
    assert browser.texts(".remark") == [
        "The run ended early (stopping after 1 failure): tests are missing here."
    ]
    for summary in browser.all("#about summary"):
        summary.click()
    assert [one_line(text) for text in browser.texts("#about details")] == [
        "1 marked test skipped tests/test_big.py::test_two there is 1 GPU, 2 are wanted",
        "1 entry of allow that excused nothing reason:dtype (tests/test_model.py)",
    ]


# --- hostile names --------------------------------------------------------------------------


def test_hostile_names_are_text_in_every_test(browser: browsers.Browser, folder: Path) -> None:
    browser.open(folder / "hostile.html")
    browser.one("#test-filter").send_keys(Keys.ARROW_DOWN)
    for text in html_reports.HOSTILE:
        shown = browser.run("return document.querySelector('#test .summary').textContent")
        assert shown.replace("\n", "")[:3] == visible(text)[:3]
        browser.run(
            """document.querySelectorAll('#test details').forEach(d => d.open = true);
            document.querySelector('#operations .rows .row').click();
            document.querySelectorAll('#test .tile.leads')[0]?.click();"""
        )
        assert browser.run("return typeof window.pwned") == "undefined"
        assert (
            browser.run(
                "return document.querySelectorAll('img, svg, iframe, a[href^=java]').length"
            )
            == 0
        )
        browser.run("document.querySelector('.test-list').focus()")
        browser.press(Keys.ARROW_DOWN)


def visible(text: str) -> str:
    """Control characters as Python writes them, line ends aside."""
    escaped = (
        c if c.isprintable() else c.encode("unicode_escape").decode() for c in text if c != "\n"
    )
    return "".join(escaped)


def test_a_long_name_breaks_no_layout(browser: browsers.Browser, folder: Path) -> None:
    for width in (400, 1400):
        browser.resize(width, 900)
        browser.open(folder / "hostile.html", "#test=" + "x" * 10_240)
        assert "xxx" in browser.text("#test h2")
        assert browser.run("return document.documentElement.scrollWidth") <= width


# --- how it looks ---------------------------------------------------------------------------


def background(browser: browsers.Browser) -> str:
    return str(browser.run("return getComputedStyle(document.body).backgroundColor"))


def test_light_and_dark_follow_the_system_until_somebody_chooses(
    browser: browsers.Browser, folder: Path
) -> None:
    browser.open(folder / "small.html")
    light = background(browser)
    browser.emulate(prefers_color_scheme="dark")
    dark = background(browser)
    assert light != dark
    button = browser.one("#theme")
    browser.wait(lambda: button.text == "Light theme")
    button.send_keys(Keys.ENTER)
    assert background(browser) == light
    browser.open(folder / "small.html")
    assert background(browser) == light, "the choice is remembered"
    browser.one("#theme").click()
    assert background(browser) == dark
    browser.run("localStorage.clear()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_text_has_contrast_and_stays_on_the_page(
    browser: browsers.Browser, folder: Path, scheme: str, width: int
) -> None:
    browser.resize(width, 1000)
    browser.emulate(prefers_color_scheme=scheme)
    browser.open(folder / "small.html")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.poor_contrast() == []


# --- size -----------------------------------------------------------------------------------


def test_fifty_thousand_operations_open_and_filter(browser: browsers.Browser, folder: Path) -> None:
    """The time is reported, not held to a limit: machines differ."""
    browser.open(folder / "large.html")
    opened = browser.ready
    painted = f"to the first picture {browser.painted:.0f} ms"
    assert browser.text("#test .counted") == "50,000 of 50,000 operations"
    assert len(browser.all("#operations .rows .row")) < 100
    times = {text: browser.driver.execute_async_script(KEYSTROKE, text) for text in QUERIES}
    assert {text: found for text, (_, found) in times.items()} == QUERIES
    print(
        f"\nload average {os.getloadavg()[0]:.1f}; open to interactive {opened:.0f} ms, {painted}"
    )
    for text, (spent, _) in times.items():
        print(f"keystroke to filtered rows on screen {spent:.0f} ms: {text}")


QUERIES = {
    "m": "50,000 of 50,000 operations",
    "type:matmul": "6,250 of 50,000 operations",
    "device:cpu": "500 of 50,000 operations",
    "-device:gpu reason:dtype source:layer7.py": "250 of 50,000 operations",
    "name:*/stage3/*/conv1/*": "893 of 50,000 operations",
}
"""By hand: every path has "model"; one type in eight; one operation in a hundred is on the CPU; of
those, n = 7 mod 100, half are 7 mod 40; stage 3 and conv 1 are one in 56, the first of them 43."""
KEYSTROKE = """
const [text, done] = arguments;
const field = document.getElementById('filter');
field.value = text;
const begin = performance.now();
field.dispatchEvent(new Event('input', { bubbles: true }));
requestAnimationFrame(() => setTimeout(() =>
  done([performance.now() - begin, document.querySelector('#test .counted').textContent])));
"""


def test_the_end_of_a_long_table_is_one_key_away(browser: browsers.Browser, folder: Path) -> None:
    browser.open(folder / "large.html")
    browser.run("document.getElementById('operations').focus()")
    browser.press(Keys.END)
    selected = browser.one("#operations .row[aria-selected='true']")
    assert selected.get_attribute("aria-rowindex") == "50001"
    assert selected.is_displayed()
    assert operations(browser)[-1].endswith("/49999")
