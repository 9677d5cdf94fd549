"""``xlm bench planner``: what is promised of the planner, measured here."""

from __future__ import annotations

import click


@click.command("planner")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def command(as_json: bool) -> None:
    """Replay published speeds, compare plans with brute force, and time the planner."""
    from xlm_hooks.replay.published import MACHINE
    from xlm_hooks.replay.report import planner_report
    from xlm_plugin.cli._output import out, print_json
    from xlm_plugin.machine.descriptor import find_machine
    from xlm_plugin.plugins import get_plugin_manager

    machines = (m for found in get_plugin_manager().hook.xlm_machines() for m in found)
    profile = find_machine(machines, MACHINE).profile()
    assert profile.rates
    report = planner_report(profile, profile.rates)
    figures = {
        "replay.median_error": report.median_error,
        "replay.whole_layers_median_error": report.whole_layers_median_error,
        "replay.first_token_median_error": report.first_token_median_error,
        "replay.kendall_tau": report.kendall_tau,
        "ladder.within_one": report.within_one,
        "regret.max": report.max_regret,
        "plan_seconds": report.plan_seconds,
        "preemption.max_error_seconds": report.preemption_max_error_seconds,
    }
    if as_json:
        print_json(figures)
        return
    for name, value in figures.items():
        out().print(f"{name:34} {value:.3f}")
