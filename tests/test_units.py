"""Sizes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlm_plugin.errors import UsageError
from xlm_plugin.units import GIB, KIB, MIB, format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("6GB", 6_000_000_000),
        ("6GiB", 6 * GIB),
        ("48MiB", 48 * MIB),
        ("1.5 GiB", 3 * GIB // 2),
        (" 512kib ", 512 * KIB),
        ("2tib", 2 * 1024 * GIB),
        ("7B", 7),
    ],
)
def test_decimal_and_binary_units_are_told_apart(text: str, size_bytes: int) -> None:
    assert parse_bytes(text) == size_bytes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a size"),
        ("much", "is not a size"),
        ("6 GiB more", "is not a size"),
        ("6", "has no unit"),
        ("6GX", "is not a unit"),
        ("6G", "is not a unit"),
        ("0GiB", "not above zero"),
        ("-1GiB", "not above zero"),
        ("0.1B", "not above zero"),
        ("0", "not above zero"),
        ("8388608TiB", "more than any memory"),
        ("9" * 400 + "B", "more than any memory"),
    ],
)
def test_a_size_that_cannot_be_used_is_refused_in_words(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        parse_bytes(text)
    assert raised.value.hint


def test_the_largest_unit_that_keeps_the_number_at_1_is_shown() -> None:
    sizes = (1536 * MIB, 48 * MIB, 2 * KIB, 1023, -2 * GIB)
    assert [format_bytes(size) for size in sizes] == [
        "1.50 GiB",
        "48.00 MiB",
        "2.00 KiB",
        "1023 B",
        "-2.00 GiB",
    ]


@given(st.integers(min_value=1, max_value=2**50))
def test_what_is_shown_reads_back_within_its_rounding(size_bytes: int) -> None:
    assert parse_bytes(format_bytes(size_bytes)) == pytest.approx(size_bytes, rel=0.005, abs=1)
