"""The plugin that brings the Ollama commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.cli import LazyCommand
from xlm_plugin.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

    from xlm_plugin.model.resolve import FoundModel

COMMANDS = (
    LazyCommand("ollama", "xlm_ollama.commands.group:command", "Let Ollama run models within a VRAM budget."),
)


@hookimpl
def xlm_commands(cli: click.Group) -> None:
    """Add ``xlm ollama``."""
    for command in COMMANDS:
        cli.add_command(command)


@hookimpl
def xlm_find_model(ref: str) -> FoundModel | None:
    """Return the model that ``ollama:NAME`` names, as Ollama would load it."""
    scheme, _, name = ref.partition(":")
    if scheme != "ollama" or not name:
        return None
    from xlm_ollama.store import find_model

    return find_model(name).found
