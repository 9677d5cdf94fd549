"""The plugin that brings the vLLM commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.cli import LazyCommand
from xlm_plugin.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

COMMANDS = (
    LazyCommand("vllm", "xlm_vllm.commands.group:command", "Let vLLM run models within a VRAM budget."),
)


@hookimpl
def xlm_commands(cli: click.Group) -> None:
    """Add ``xlm vllm``."""
    for command in COMMANDS:
        cli.add_command(command)
