"""The whole plugin API on one page. Implementers may leave out arguments that they do not use."""

# The bodies are empty: pluggy reads only the signatures.
# mypy: disable-error-code="empty-body"

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import click

    from xlm_plugin.backend import Backend
    from xlm_plugin.machine.descriptor import MachineDescriptor
    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.profile import Measurement, MeasurementRequest, Profile
    from xlm_plugin.model.descriptor import ModelDescriptor
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.model.resolve import FoundModel
    from xlm_plugin.plan.document import Plan, PlannedContext
    from xlm_plugin.plan.strategy import Objective, Strategy
    from xlm_plugin.schedule.job import Job, SwitchCost, SwitchStats

hookspec = pluggy.HookspecMarker("xlm_plugin")
hookimpl = pluggy.HookimplMarker("xlm_plugin")


# Backends: engines, and commands of the command line.


@hookspec
def xlm_backends() -> Iterable[Backend]:
    """Return the engines that this plugin adapts."""


@hookspec
def xlm_commands(cli: click.Group) -> None:
    """Add commands to the command line."""


@hookspec
def xlm_benchmarks(bench: click.Group) -> None:
    """Add commands to ``xlm bench``."""


@hookspec
def xlm_models() -> Iterable[ModelDescriptor]:
    """Return models that have a name and are fetched when they are first used."""


@hookspec(firstresult=True)
def xlm_find_model(ref: str) -> FoundModel | None:
    """Return the model that ``ref`` names in a store of models, or None where it names none."""


# Planner: strategies and plans.


@hookspec
def xlm_strategies() -> Iterable[Strategy]:
    """Return named ways to fill a token tier."""


@hookspec(firstresult=True)
def xlm_plan(
    model: ModelGraph,
    profile: Profile,
    context: PlannedContext,
    budget: int,
    objective: Objective,
    strategies: Sequence[Strategy],
) -> Plan | None:
    """Return the plan of ``model`` within ``budget`` bytes, or None to leave it to another planner."""


@hookspec
def xlm_plan_ready(plan: Plan) -> None:
    """Observe a finished plan."""


# Profiler: what this machine is, and how fast.


@hookspec(firstresult=True)
def xlm_describe_machine() -> Machine | None:
    """Return this machine's device, host and limits."""


@hookspec
def xlm_machines() -> Iterable[MachineDescriptor]:
    """Return machines that have a name and are described as data."""


@hookspec
def xlm_measure(machine: Machine, request: MeasurementRequest) -> Iterable[Measurement]:
    """Return measurements of one op on ``machine``; several plugins may answer."""


# Preemption: who gives way, and what it costs.


@hookspec(firstresult=True)
def xlm_choose_victims(
    running: Sequence[Job], request: Job, costs: Sequence[SwitchCost]
) -> Sequence[Job] | None:
    """Return the running jobs that give way to ``request``, or None to leave it to another policy."""


@hookspec(firstresult=True)
def xlm_switch_cost(model: ModelGraph, profile: Profile) -> SwitchCost | None:
    """Return what it costs to park and wake ``model`` on this machine."""


@hookspec
def xlm_parking(job: Job) -> None:
    """Observe a job that is about to give up its VRAM."""


@hookspec
def xlm_parked(job: Job, stats: SwitchStats) -> None:
    """Observe a job that has given up its VRAM."""


@hookspec
def xlm_woken(job: Job, stats: SwitchStats) -> None:
    """Observe a job that has its VRAM back."""
