"""``xlm plan``: what would run where within a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._output import out
from xlm_plugin.cli._planning import plan_model, planning_options

if TYPE_CHECKING:
    from xlm_plugin.cli._planning import PlanningOptions


@click.command("plan")
@click.argument("model")
@planning_options
@click.option("--machine", metavar="NAME", help="Plan for a described machine instead of this one.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan to FILE.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the plan document instead of tables.")
def command(
    model: str, planning: PlanningOptions, machine: str | None, output: Path | None, as_json: bool
) -> None:
    """Plan MODEL within a VRAM budget: a .gguf file, a folder or a known name.

    Exit code 3 means that it does not fit.
    """
    planned = plan_model(model, planning, machine)
    if output:
        planned.plan.write(output)
        click.echo(f"The plan is in {output}.", err=True)
    if as_json:
        click.echo(planned.plan.to_json(), nl=False)
        return
    from xlm_plugin.cli._plan_view import print_plan

    print_plan(out(), planned.plan, planned.model)
