"""The HTML report in Chromium: operations, map and figures, by mouse and by keyboard."""

from __future__ import annotations

from pathlib import Path

import browser as browsers
import pytest
from html_page import cells, one_line, operations, tile, tiles, type_filter

browsers.needs_browser()

from selenium.webdriver.common.keys import Keys  # noqa: E402

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


def test_what_is_allowed_says_so_and_is_no_offence(browser: browsers.Browser, pages: Path) -> None:
    browser.open(pages / "excused.html")
    assert browser.texts(".choices label") == ["All 1", "That count 0", "Off GPU 0"]
    assert "allowed: requested-elsewhere" in browser.text("#operations .rows .row")
    assert browser.all("#operations .rows .offends, .tile .offends, .reasons") == []
    browser.one("#operations .rows .row").click()
    assert "allowed by 'type:Where'" in browser.text("#details")


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


@pytest.mark.parametrize(
    ("scope", "inside"), [("/", {"x/", "y/"}), ("a//", {"b/", "c/"})], ids=["first", "middle"]
)
def test_scopes_with_empty_parts_are_walked(
    browser: browsers.Browser, pages: Path, scope: str, inside: set[str]
) -> None:
    browser.open(pages / "odd.html")
    assert set(tiles(browser)) == {"/", "a//", "E"}
    tile(browser, scope).click()
    assert set(tiles(browser)) == inside
    assert browser.text("#test .counted").startswith("2 of 5 operations")
    browser.press(Keys.ESCAPE)
    assert set(tiles(browser)) == {"/", "a//", "E"}
    assert browser.text("#test .counted") == "5 of 5 operations"


def test_the_way_up_is_shown(small: browsers.Browser) -> None:
    small.one(".map .tile.leads").click()
    small.one(".crumbs button").click()
    assert set(tiles(small)) == {"net/", "optimizer/"}


def test_a_type_in_a_scope_filters_the_table(small: browsers.Browser) -> None:
    tile(small, "optimizer/").click()
    tile(small, "Mul").click()
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


def test_what_else_there_is_to_know_of_the_run(browser: browsers.Browser, pages: Path) -> None:
    browser.open(pages / "small.html")
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
