"""``xlm plugins``: what is loaded, from which distribution, and what was skipped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._output import out, print_json
from xlm_plugin.plugins import get_plugin_manager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.plugins import PluginInfo


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects.")
def command(as_json: bool) -> None:
    """List the plugins: name, distribution, version and hooks, or why one is skipped.

    XLM_LOAD_PLUGINS restricts them to a comma-separated list of names; empty means none.
    """
    infos = get_plugin_manager().infos()
    if as_json:
        print_json(infos)
    elif infos:
        _print_table(infos)
    else:
        click.echo("No plugins are loaded.")


def _print_table(infos: Sequence[PluginInfo]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for title in ("plugin", "distribution", "version", "hooks"):
        table.add_column(title)
    for info in infos:
        hooks = Text(f"skipped: {info.problem}", style="red") if info.problem else ", ".join(info.hooks)
        table.add_row(info.name, info.distribution or "-", info.version or "-", hooks)
    out().print(table)
