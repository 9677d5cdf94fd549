"""``xlm plan``: what would run where within a budget."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._output import err, out, print_json
from xlm_plugin.cli._planning import plan_request, planning_options
from xlm_plugin.errors import UsageError

if TYPE_CHECKING:
    from xlm_plugin.cli._planning import Planned, PlanningOptions, PlanRequest
    from xlm_plugin.plan.explain import Explanation


@click.command("plan")
@click.argument("model")
@planning_options
@click.option("--machine", metavar="NAME", help="Plan for a described machine instead of this one.")
@click.option("--curve", is_flag=True, help="Show speed against the budget instead of one plan.")
@click.option("--explain", is_flag=True, help="Say why, where the time goes, and what more memory would buy.")
@click.option("--check", is_flag=True, help="Try the two quickest plans on the engine and keep the better.")
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads of --check.")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan, explained and drawn, to FILE as one page.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan to FILE.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print the plan document, curve or explanation, not tables."
)
def command(
    model: str,
    planning: PlanningOptions,
    machine: str | None,
    curve: bool,
    explain: bool,
    check: bool,
    threads: int | None,
    html: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Plan MODEL within a VRAM budget: a .gguf file, a folder or a known name.

    Exit code 3 means that it does not fit.
    """
    if check and machine is not None:
        raise UsageError("A described machine runs nothing.", "Leave out --check, or --machine.")
    request = plan_request(model, planning, machine)
    if curve:
        _show_curve(request, as_json=as_json)
        return
    planned = request.planned()
    if check:
        planned = _checked(request, planned, threads)
    if output:
        planned.plan.write(output)
        click.echo(f"The plan is in {output}.", err=True)
    if html:
        _write_page(request, planned, html)
        click.echo(f"The page is {html}.", err=True)
    _show_plan(request, planned, explain=explain, as_json=as_json)


def _show_plan(request: PlanRequest, planned: Planned, *, explain: bool, as_json: bool) -> None:
    explanation = _explanation(request, planned) if explain else None
    if as_json:
        if explanation:
            print_json(explanation)
        else:
            click.echo(planned.plan.to_json(), nl=False)
        return
    from xlm_plugin.cli._explain_view import print_explanation
    from xlm_plugin.cli._plan_view import print_plan
    from xlm_plugin.plan.outcomes import last_outcomes

    print_plan(out(), planned.plan, planned.model, speeds=planned.promises_speeds)
    for outcome in last_outcomes(planned.plan):
        out().print(
            f"Note: The last run of this model on {outcome.device}, {outcome.date}: {outcome.sentence}."
        )
    if explanation:
        print_explanation(out(), explanation)


def _checked(request: PlanRequest, planned: Planned, threads: int | None) -> Planned:
    """Return the quicker one of the two plans that are predicted to be quickest, as the engine runs them."""
    from xlm_plugin.backend import LaunchOptions
    from xlm_plugin.cli._explain_view import print_trials
    from xlm_plugin.cli._launch import orderly_end, ready_backend
    from xlm_plugin.cli._plan_check import TRIED, candidates, tried

    plans = candidates(request, planned)[:TRIED]
    if len(plans) < TRIED:
        click.echo("There is only one plan for this budget: nothing was tried.", err=True)
        return planned
    backend = ready_backend(planned)
    with orderly_end():
        options = LaunchOptions(threads=threads or planned.host.threads, device=planned.device)
        trials = tried(backend, request, plans, options)
    print_trials(err(), trials)
    return replace(planned, plan=trials[0].plan)


def _explanation(request: PlanRequest, planned: Planned) -> Explanation:
    from xlm_plugin.plan.explain import explain

    return explain(planned.plan, planned.model, planned.profile, request.plan, request.planning.objective)


def _write_page(request: PlanRequest, planned: Planned, path: Path) -> None:
    from xlm_plugin.cli._plan_page import plan_page
    from xlm_plugin.errors import PlanError
    from xlm_plugin.plan.simulated import SimulatedPlan
    from xlm_plugin.text_files import write_text

    simulated = SimulatedPlan(planned.plan, planned.model, planned.profile)
    page = plan_page(simulated, _explanation(request, planned), request.curve())
    write_text(path, page, "page", PlanError)


def _show_curve(request: PlanRequest, *, as_json: bool) -> None:
    curve = request.curve()
    if as_json:
        print_json({"points": curve.points, "knee_budget_bytes": curve.knee.budget_bytes})
        return
    from xlm_plugin.cli._curve_view import print_curve

    print_curve(out(), request.model, request.device, curve)
