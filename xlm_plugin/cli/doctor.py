"""``xlm doctor``: whether models can run here, and what to do where they cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._output import out, print_json

if TYPE_CHECKING:
    from xlm_plugin.cli._checks import Check

_STYLES = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print all checks as JSON.")
def command(as_json: bool) -> int:
    """Check device, driver, engine, memory, limits, cache folder and plugins.

    The exit code is 1 where something fails, so that models cannot run.
    """
    from xlm_plugin.cli._checks import all_checks
    from xlm_plugin.machine.files import SystemFiles
    from xlm_plugin.machine.nvidia import import_nvml
    from xlm_plugin.plugins import get_plugin_manager

    checks = all_checks(get_plugin_manager(), SystemFiles(), import_nvml)
    runs = all(check.status != "fail" for check in checks)
    if as_json:
        print_json({"ok": runs, "checks": checks})
    else:
        _print_table(checks)
    return 0 if runs else 1


def _print_table(checks: list[Check]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, show_header=False)
    for check in checks:
        found = Text(check.found)
        if check.advice:
            found.append(f"\n{check.advice}", style="dim")
        table.add_row(Text(check.status, style=_STYLES[check.status]), check.name, found)
    out().print(table)
