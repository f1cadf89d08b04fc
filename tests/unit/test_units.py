"""Sizes in bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfdevice.units import SizeError, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("16 GiB", 16 * 2**30),
        ("16GiB", 16 * 2**30),
        ("16 gib", 16 * 2**30),
        ("1.5GB", 1_500_000_000),
        ("512 MiB", 512 * 2**20),
        ("0.5 KiB", 512),
        (".5 KiB", 512),
        ("10kb", 10_000),
        ("2 TB", 2 * 10**12),
        ("1 TiB", 2**40),
        ("7", 7),
        ("7 B", 7),
        (" 7B ", 7),
        (7, 7),
        (0, 0),
        (1.9, 1),
    ],
)
def test_parse(text: str | int | float, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    ["", "GiB", "16 Gb s", "-1", "-1 GiB", "1e9", "1,5 GB", "16 GiB/s", "0x10", "1 2", "٣ GiB"],
)
def test_what_is_no_size_is_shown(text: str) -> None:
    with pytest.raises(SizeError) as caught:
        parse_size(text)
    assert repr(text) in str(caught.value)


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(SizeError, match="'GX' is none of B, KB"):
        parse_size("16 GX")


@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf"), True, None, [], b"1"])
def test_what_is_no_size_at_all(value: object) -> None:
    with pytest.raises(SizeError):
        parse_size(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1, "1 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (2**20 - 1, "1 MiB"),
        (2**20, "1 MiB"),
        (1000 * 2**10, "1000 KiB"),
        (16 * 2**30, "16 GiB"),
        (3 * 2**40, "3 TiB"),
        (5000 * 2**40, "5000 TiB"),
        (-1536, "-1.5 KiB"),
    ],
)
def test_format(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(min_value=0, max_value=2**60))
def test_what_is_written_can_be_read(size: int) -> None:
    # Three digits at the least, one of which may be after the point.
    assert parse_size(format_size(size)) == pytest.approx(size, rel=0.051, abs=0)


@given(st.integers(min_value=0, max_value=2**50), st.integers(min_value=0, max_value=2**50))
def test_larger_sizes_never_read_as_smaller(a: int, b: int) -> None:
    small, large = sorted((a, b))
    assert parse_size(format_size(small)) <= parse_size(format_size(large))
