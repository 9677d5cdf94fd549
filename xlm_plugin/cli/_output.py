"""Where output goes: results to stdout, everything else to stderr."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

_PIPE_WIDTH = 160


def print_json(value: object) -> None:
    """Print ``value`` as indented JSON on stdout; dataclasses become objects, paths strings."""
    click.echo(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def out() -> Console:
    """Return the console of stdout. Text is printed as it is: give styles by ``style=``, not in brackets."""
    return _console(stderr=False)


def err() -> Console:
    """Return the console of stderr, for progress and notes."""
    return _console(stderr=True)


@cache
def _console(*, stderr: bool) -> Console:
    import os

    from rich.console import Console

    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        # A table in a pipe or a file is not cut to the width of a terminal that is not there.
        console.width = _PIPE_WIDTH
    return console
