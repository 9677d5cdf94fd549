"""The command line. Each core command is one file; plugins add theirs through ``xlm_commands``."""

from __future__ import annotations

from xlm_plugin.cli._app import cli, main
from xlm_plugin.cli._lazy import LazyCommand

__all__ = ["LazyCommand", "cli", "main"]
