"""From the output of a failed build step to one sentence."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xlm_llamacpp.engine.store import disk_full
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_OUT_OF_MEMORY = re.compile(r"Killed signal|virtual memory exhausted|cannot allocate memory", re.IGNORECASE)
_FIRST_ERROR = re.compile(r"(?:^|[\s:])(?:fatal )?error:", re.IGNORECASE)
_CMAKE_ERROR = re.compile(r"^CMake Error")


def build_error(step: str, lines: Sequence[str], log: Path, hint: str = "") -> EngineError:
    """Return the error of ``step`` that printed ``lines``, all of which are in ``log``."""
    if any(_DISK_FULL.search(line) for line in lines):
        return disk_full(log)
    if any(_OUT_OF_MEMORY.search(line) for line in lines):
        cause = "memory ran out"
        hint = "Close other programs and run the command again; it goes on where it stopped."
    else:
        cause = _cause([line.strip() for line in lines if line.strip()])
    return EngineError(f"{step} failed: {cause.rstrip('.')}.", f"{hint} The log: {log}.".lstrip())


def _cause(lines: Sequence[str]) -> str:
    for number, line in enumerate(lines):
        if _CMAKE_ERROR.match(line):
            # What went wrong stands in the line after the place.
            return lines[number + 1] if line.endswith(":") and number + 1 < len(lines) else line
        if _FIRST_ERROR.search(line):
            return line
    return lines[-1] if lines else "it printed nothing"
