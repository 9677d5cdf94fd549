"""The built-in plugin: the planner, its strategies, and what this machine is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import click

    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan, PlannedContext
    from xlm_plugin.plan.strategy import Objective, Strategy
    from xlm_plugin.schedule.job import SwitchCost


@hookimpl
def xlm_strategies() -> Iterable[Strategy]:
    """Return dynamic, static and gpu_only."""
    from xlm_hooks.planner.strategies import BUILT_IN

    return BUILT_IN


@hookimpl
def xlm_plan(
    model: ModelGraph,
    profile: Profile,
    context: PlannedContext,
    budget: int,
    objective: Objective,
    strategies: Sequence[Strategy],
) -> Plan:
    """Plan by simulation. Raises DoesNotFitError where nothing fits ``budget``."""
    from xlm_hooks.planner.best import planner_of

    return planner_of(model, profile, context, objective, tuple(strategies)).plan(budget)


@hookimpl
def xlm_benchmarks(bench: click.Group) -> None:
    """Add those of the planner and the profiler."""
    from xlm_hooks.profiler.bench import profile_command, steps_command
    from xlm_hooks.replay.command import command

    for each in (command, profile_command, steps_command):
        bench.add_command(each)


@hookimpl
def xlm_commands(cli: click.Group) -> None:
    """Add the profiler."""
    from xlm_plugin.cli import LazyCommand

    cli.add_command(
        LazyCommand("profile", "xlm_hooks.profiler.command:command", "Measure how fast this machine is.")
    )


@hookimpl
def xlm_describe_machine() -> Machine:
    """Return what the system's files and drivers say."""
    from xlm_hooks.profiler.describe import describe_machine

    return describe_machine()


@hookimpl
def xlm_switch_cost(model: ModelGraph, profile: Profile) -> SwitchCost:
    """Return what the weights and the link make of it."""
    from xlm_hooks.preemption.cost import switch_cost

    return switch_cost(model, profile)
