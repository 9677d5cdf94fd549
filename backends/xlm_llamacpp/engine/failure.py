"""From the output of a failed build step to one sentence."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from xlm_llamacpp.engine.store import disk_full
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded", re.IGNORECASE)
_OUT_OF_MEMORY = re.compile(r"Killed signal|virtual memory exhausted|cannot allocate memory", re.IGNORECASE)
_FIRST_ERROR = re.compile(
    r"(?:^|[\s:])(?:fatal )?error:|undefined reference to|cannot find -l", re.IGNORECASE
)
_CMAKE_ERROR = re.compile(r"^CMake Error")


def build_error(step: str, lines: Sequence[str], log: Path, hint: str = "") -> EngineError:
    """Return the error of ``step`` that printed ``lines``, all of which are in ``log``."""
    if any(_DISK_FULL.search(line) for line in lines):
        return disk_full(log)
    if any(_OUT_OF_MEMORY.search(line) for line in lines):
        cause = "memory ran out"
        hint = "Close other programs and run the command again; it goes on where it stopped."
    else:
        cause = _cause(lines)
    return EngineError(f"{step} failed: {cause.rstrip('.')}.", f"{hint} The log: {log}.".lstrip())


def _cause(lines: Sequence[str]) -> str:
    for number, line in enumerate(lines):
        if _CMAKE_ERROR.match(line):
            return _cmake_message(lines[number + 1 :]) or line
        if _FIRST_ERROR.search(line):
            return line.strip().removeprefix("ERROR: ")
    return next((line.strip() for line in reversed(lines) if line.strip()), "it printed nothing")


def _cmake_message(lines: Sequence[str]) -> str:
    """Return the first sentence of the indented block that ``lines`` begin with."""
    block = takewhile(lambda line: line.startswith("  ") or not line.strip(), lines)
    return re.split(r"\.\s", " ".join(" ".join(block).split()))[0]
