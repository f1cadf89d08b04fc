"""The HTML report in Chromium: opened from disk, safe, legible, quick."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path

import browser as browsers
import html_reports
import pytest
import pytest_process
from html_page import one_line, operations, tiles

browsers.needs_browser()

from selenium.webdriver.common.keys import Keys  # noqa: E402

# --- opening --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["small", "hostile", "large", "empty"])
def test_it_opens_from_disk_and_asks_for_nothing(
    browser: browsers.Browser, pages: Path, name: str
) -> None:
    browser.open(pages / f"{name}.html")
    assert browser.requests == [(pages / f"{name}.html").as_uri()]
    assert browser.errors == []


def test_the_conclusion_comes_first(small: browsers.Browser) -> None:
    assert small.text("h1") == "1 of 2 judged tests left the device; 1 failed against the baseline"
    facts = one_line(small.text("#facts"))
    assert "TensorFlow 2.21.0" in facts
    assert "Python 3.13.5" in facts
    assert re.search(r"GPU:0 Simulated GPU, 16 GiB simulated", facts)


def test_a_run_that_watched_nothing_says_what_to_do(browser: browsers.Browser, pages: Path) -> None:
    browser.open(pages / "empty.html")
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


def test_an_address_names_a_test(browser: browsers.Browser, pages: Path) -> None:
    browser.open(pages / "small.html", "#test=tests%2Ftest_other.py%3A%3Atest_fine")
    assert browser.text("#test h2") == "test_fine"
    assert "test_fine" in browser.text(".test[aria-selected='true']")


# --- hostile names --------------------------------------------------------------------------


def test_hostile_names_are_text_in_every_test(browser: browsers.Browser, pages: Path) -> None:
    browser.open(pages / "hostile.html")
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


def test_a_long_name_breaks_no_layout(browser: browsers.Browser, pages: Path) -> None:
    for width in (400, 1400):
        browser.resize(width, 900)
        browser.open(pages / "hostile.html", "#test=" + "x" * 10_240)
        assert "xxx" in browser.text("#test h2")
        assert browser.run("return document.documentElement.scrollWidth") <= width


# --- how it looks ---------------------------------------------------------------------------


def background(browser: browsers.Browser) -> str:
    return str(browser.run("return getComputedStyle(document.body).backgroundColor"))


def test_light_and_dark_follow_the_system_until_somebody_chooses(
    browser: browsers.Browser, pages: Path
) -> None:
    browser.open(pages / "small.html")
    light = background(browser)
    browser.emulate(prefers_color_scheme="dark")
    dark = background(browser)
    assert light != dark
    button = browser.one("#theme")
    browser.wait(lambda: button.text == "Light theme")
    button.send_keys(Keys.ENTER)
    assert background(browser) == light
    browser.open(pages / "small.html")
    assert background(browser) == light, "the choice is remembered"
    browser.one("#theme").click()
    assert background(browser) == dark
    browser.run("localStorage.clear()")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_text_has_contrast_and_stays_on_the_page(
    browser: browsers.Browser, pages: Path, scheme: str, width: int
) -> None:
    browser.resize(width, 1000)
    browser.emulate(prefers_color_scheme=scheme)
    browser.open(pages / "small.html")
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.poor_contrast() == []


# --- size -----------------------------------------------------------------------------------


def test_fifty_thousand_operations_open_and_filter(browser: browsers.Browser, pages: Path) -> None:
    """The time is reported, not held to a limit: machines differ."""
    browser.open(pages / "large.html")
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


def test_a_long_table_prints_on_a_few_pages(browser: browsers.Browser, pages: Path) -> None:
    browser.open(pages / "large.html")
    printed = base64.b64decode(browser.driver.print_page())
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 6


def test_the_end_of_a_long_table_is_one_key_away(browser: browsers.Browser, pages: Path) -> None:
    browser.open(pages / "large.html")
    browser.run("document.getElementById('operations').focus()")
    browser.press(Keys.END)
    selected = browser.one("#operations .row[aria-selected='true']")
    assert selected.get_attribute("aria-rowindex") == "50001"
    assert selected.is_displayed()
    assert operations(browser)[-1].endswith("/49999")


# --- from a run -----------------------------------------------------------------------------

SUITE = """
    import pytest
    import tensorflow as tf

    @tf.function(autograph=False)
    def step(x):
        with tf.name_scope("encoder/attention"):
            pairs = tf.cast(x, tf.int32)
            scores = tf.matmul(pairs, pairs)  # no GPU kernel for int32
        with tf.name_scope("encoder/ffn"):
            return tf.nn.relu(tf.cast(scores, tf.float32))

    @pytest.mark.on_gpu
    def test_step():
        step(tf.ones([4, 4]))
"""


def test_a_run_leaves_a_page(browser: browsers.Browser, tmp_path: Path) -> None:
    pytest_process.needs_simulator()
    run = pytest_process.run_simulated(tmp_path, SUITE, "--tfdevice-report=where.html")
    assert run["test_step"].outcome == "failed"
    browser.open(tmp_path / "where.html")
    assert browser.text("h1") == "1 of 1 judged test left the device"
    assert "simulated" in browser.text("#facts")
    assert operations(browser)[0] == "encoder/attention/MatMul"
    row = one_line(browser.one("#operations .rows .row").text)
    assert "MatMul CPU:0 dtype test_it.py:8 1" in row
    browser.one("#operations .rows .row").click()
    assert "→ int32[4, 4]" in browser.text("#details")
    assert {name for name in tiles(browser) if name.endswith("/")} == {"encoder/"}
    assert ", 1 off. " in tiles(browser)["encoder/"]
