"""``xlm plan``: what would run where within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._output import out, print_json
from xlm_plugin.cli._planning import curve_of_model, plan_model, planning_options

if TYPE_CHECKING:
    from xlm_plugin.cli._planning import PlanningOptions


@click.command("plan")
@click.argument("model")
@planning_options
@click.option("--machine", metavar="NAME", help="Plan for a described machine instead of this one.")
@click.option("--curve", is_flag=True, help="Show speed against the budget instead of one plan.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan to FILE.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the plan document, or the curve, instead of tables."
)
def command(
    model: str,
    planning: PlanningOptions,
    machine: str | None,
    curve: bool,
    output: Path | None,
    as_json: bool,
) -> None:
    """Plan MODEL within a VRAM budget: a .gguf file, a folder or a known name.

    Exit code 3 means that it does not fit.
    """
    if curve:
        _show_curve(model, planning, machine, as_json=as_json)
        return
    planned = plan_model(model, planning, machine)
    if output:
        planned.plan.write(output)
        click.echo(f"The plan is in {output}.", err=True)
    if as_json:
        click.echo(planned.plan.to_json(), nl=False)
        return
    from xlm_plugin.cli._plan_view import print_plan

    print_plan(out(), planned.plan, planned.model)


def _show_curve(ref: str, planning: PlanningOptions, machine: str | None, *, as_json: bool) -> None:
    model, device, curve = curve_of_model(ref, planning, machine)
    if as_json:
        print_json({"points": curve.points, "knee_budget_bytes": curve.knee.budget_bytes})
        return
    from xlm_plugin.cli._curve_view import print_curve

    print_curve(out(), model, device, curve)
