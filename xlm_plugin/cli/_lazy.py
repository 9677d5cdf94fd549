"""Commands that cost nothing until they are invoked."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click


class LazyCommand(click.Command):
    """A command known by name and short help; its module is imported when it is invoked.

    ``target`` is ``"module:attribute"`` of a click command or group.
    """

    def __init__(self, name: str, target: str, short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self.target = target

    def load(self) -> click.Command:
        """Import the module and return the command itself."""
        module, _, attribute = self.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Hand over to the command itself."""
        return self.load().make_context(info_name, args, parent, **extra)

    def to_info_dict(self, ctx: click.Context) -> dict[str, Any]:
        """Describe the command itself."""
        return self.load().to_info_dict(ctx)
