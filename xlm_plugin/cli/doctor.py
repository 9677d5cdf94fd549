"""``xlm doctor``: whether models can run here, and what to do where they cannot."""

from __future__ import annotations

import click

from xlm_plugin.cli._check_list import print_checks
from xlm_plugin.cli._output import print_json


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
        print_checks(checks)
    return 0 if runs else 1
