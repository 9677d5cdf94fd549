"""What a doctor finds, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class Check:
    """What was found. ``fail`` means that it stands in the way; ``advice`` is what to do next."""

    name: str
    status: Literal["ok", "warn", "fail"]
    found: str
    advice: str = ""


def print_checks(checks: Iterable[Check]) -> None:
    """Print ``checks`` as a table on stdout."""
    from rich.table import Table
    from rich.text import Text

    from xlm_plugin.cli._output import out

    table = Table(box=None, pad_edge=False, show_header=False)
    for check in checks:
        found = Text(check.found)
        if check.advice:
            found.append(f"\n{check.advice}", style="dim")
        table.add_row(Text(check.status, style=_STYLES[check.status]), check.name, found)
    out().print(table)
