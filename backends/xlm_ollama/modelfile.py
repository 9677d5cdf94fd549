"""Modelfiles with lines for xlm, and what Ollama accepts in their place.

Ollama refuses parameters that it does not know and drops comments, so both are read here and become an
option's file with its ``ADAPTER`` line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from xlm_ollama.option import PRIORITIES, Option
from xlm_plugin.errors import UsageError
from xlm_plugin.plan.strategy import Objective
from xlm_plugin.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

OPTION_FILE: Final = "xlm.gguf"
_ADAPTER: Final = f"ADAPTER ./{OPTION_FILE}"
_COMMENT: Final = re.compile(r"#\s*xlm:\s*(.*)", re.IGNORECASE)
_PARAMETER: Final = re.compile(r"PARAMETER\s+xlm_(\w+)\s+(.+)", re.IGNORECASE)
_FROM: Final = re.compile(r"FROM\s+(.+)", re.IGNORECASE)
_QUOTES: Final = '"""'


@dataclass(frozen=True, slots=True)
class Modelfile:
    """A Modelfile: what it is made from, its option, and its text as Ollama accepts it."""

    base: str
    option: Option
    text: str


def convert(text: str) -> Modelfile:
    """Return the Modelfile in ``text`` with the lines for xlm made into an ``ADAPTER`` line.

    A line is ``# xlm: vram=6GiB objective=tps priority=1`` or ``PARAMETER xlm_vram 6GiB``. A text that was
    converted before comes out the same. Raises UsageError where there are no such lines, or wrong ones.
    """
    settings: dict[str, str] = {}
    base = None
    kept: list[str] = []
    for line, quoted in _lines(text):
        comment = None if quoted else _COMMENT.fullmatch(line.strip())
        parameter = None if quoted else _PARAMETER.fullmatch(line.strip())
        if comment:
            settings |= _pairs(comment[1])
        elif parameter:
            settings[parameter[1].lower()] = parameter[2].strip().strip('"')
            continue
        if line.strip() == _ADAPTER and not quoted:
            continue
        kept.append(line)
        if base is None and not quoted and (found := _FROM.fullmatch(line.strip())):
            base = found[1].strip('"')
            kept.append(_ADAPTER)
    if base is None:
        raise UsageError("The Modelfile has no FROM line.")
    if not settings:
        raise UsageError("The Modelfile has no line for xlm.", "Add one, such as: # xlm: vram=6GiB")
    return Modelfile(base, option_of(settings), "\n".join(kept) + "\n")


def option_of(settings: dict[str, str]) -> Option:
    """Return the option that ``settings`` name. Raises UsageError for unknown names and values."""
    known: dict[str, Objective] = {name: name for name in get_args(Objective)}
    unknown = sorted(settings.keys() - {"vram", "objective", "priority"})
    if unknown:
        raise UsageError(f"xlm has no setting '{unknown[0]}'.", "Known are: vram, objective, priority.")
    vram, objective = settings.get("vram", "auto"), settings.get("objective", "e2e")
    priority = settings.get("priority", "0")
    if objective not in known:
        raise UsageError(f"There is no objective '{objective}'.", f"Known are: {', '.join(known)}.")
    if not re.fullmatch(r"-?\d{1,3}", priority) or int(priority) not in PRIORITIES:
        raise UsageError(f"The priority '{priority}' is not from {PRIORITIES[0]} to {PRIORITIES[-1]}.")
    return Option(None if vram == "auto" else parse_bytes(vram), known[objective], int(priority))


def _pairs(text: str) -> dict[str, str]:
    pairs = {}
    for word in text.split():
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise UsageError(f"'{word}' sets nothing.", "Write it as vram=6GiB.")
        pairs[name.lower()] = value
    return pairs


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it goes on with a text in triple quotes."""
    quoted = False
    for line in text.splitlines():
        yield line, quoted
        if line.count(_QUOTES) % 2:
            quoted = not quoted
