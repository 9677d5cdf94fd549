"""System files that are missing, or not of the kind asked for, read as None."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from .conftest import System


@pytest.mark.parametrize(
    ("content", "number"), [("42\n", 42), ("0x10de\n", 0x10DE), ("max\n", None), ("", None), ("-1\n", -1)]
)
def test_numbers_are_decimal_or_hexadecimal(system: System, content: str, number: int | None) -> None:
    assert system({"/x": content}).number("/x") == number


def test_a_missing_file_reads_as_none(system: System) -> None:
    files = system({})
    assert (files.data("/x"), files.text("/x"), files.number("/x"), files.field("/x", "a")) == (None,) * 4


def test_a_field_is_what_follows_its_name(system: System) -> None:
    files = system({"/x": "name\t: a: b\nlimit 5\n"})
    assert (files.field("/x", "name"), files.field("/x", "limit "), files.field("/x", "none")) == (
        "a: b",
        "5",
        None,
    )


def test_folders_are_found_by_pattern_in_order(system: System) -> None:
    files = system({"/sys/b/x": "", "/sys/a/x": "", "/sys/file": ""})
    assert files.folders("/sys/*") == ["/sys/a", "/sys/b"]
    assert files.is_folder("/sys/a")
    assert not files.is_folder("/sys/file")
