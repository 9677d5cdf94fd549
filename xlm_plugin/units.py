"""Byte sizes as people write them: decimal (``6GB``) and binary (``6GiB``) are told apart."""

from __future__ import annotations

import re

from xlm_plugin.errors import UsageError

KIB = 1024
MIB = 1024**2
GIB = 1024**3

_FACTORS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": KIB,
    "MIB": MIB,
    "GIB": GIB,
    "TIB": 1024**4,
}
# What engines count bytes in.
_MOST_BYTES = 2**63 - 1
_SIZE = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")


def parse_bytes(text: str) -> int:
    """Return the number of bytes that ``text`` such as ``"6GiB"`` names.

    Raises UsageError for a missing or unknown unit and for sizes that no memory has.
    """
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"'{text}' is not a size.", "Write a number and a unit, such as 6GiB or 6GB.")
    number, unit = match.groups()
    if float(number) <= 0:
        raise _not_above_zero(text)
    if not unit:
        raise UsageError(f"The size '{text}' has no unit.", f"Write {number}GiB, {number}MiB or {number}GB.")
    factor = _FACTORS.get(unit.upper())
    if factor is None:
        raise UsageError(
            f"'{unit}' in '{text}' is not a unit of size.", "Use B, KB, MB, GB, KiB, MiB or GiB."
        )
    size = float(number) * factor
    if size < 1:
        raise _not_above_zero(text)
    if size > _MOST_BYTES:
        raise UsageError(f"The size '{text}' is more than any memory.", "Give a size such as 6GiB.")
    return int(size)


def _not_above_zero(text: str) -> UsageError:
    return UsageError(f"The size '{text}' is not above zero.", "Give a size such as 6GiB.")


def format_bytes(size_bytes: int) -> str:
    """Return ``size_bytes`` in the largest binary unit that keeps it at 1 or more: ``"1.50 GiB"``."""
    for unit, factor in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if abs(size_bytes) >= factor:
            return f"{size_bytes / factor:.2f} {unit}"
    return f"{size_bytes} B"
