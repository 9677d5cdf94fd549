"""The options of every command that makes a plan, and the plan they ask for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, get_args

import click

from xlm_plugin.model.cache import CacheType
from xlm_plugin.plan.strategy import Objective

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xlm_plugin.machine.document import Device, Host
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.curve import BudgetCurve
    from xlm_plugin.plan.document import Plan, PlannedContext
    from xlm_plugin.plugins import PluginManager

DEFAULT_CONTEXT_TOKENS = 4096
DEFAULT_UBATCH_TOKENS = 512

_CACHE_TYPE = click.Choice(get_args(CacheType))
# Engines count tokens in 32 bits.
_MOST = 2**31 - 1
_COUNT = click.IntRange(1, _MOST)

AUTO = 0
UBATCHES = (128, 256, 512, 1024, 2048)


class _CountOrAuto(click.IntRange):
    """A count, or ``auto``, which is ``AUTO``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return AUTO if value == "auto" else super().convert(value, param, ctx)


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """What a user says about the plan they want. A ``ubatch`` of ``AUTO`` is left to predictions."""

    vram: str = "auto"
    ctx: int | None = None
    kv_type_k: CacheType = "f16"
    kv_type_v: CacheType = "f16"
    ubatch: int = 512
    parallel: int = 1
    flash_attention: bool = True
    host_kv: bool = True
    device: str | None = None
    objective: Objective = "e2e"
    strategy: str | None = None

    def context(self, model: ModelGraph) -> PlannedContext:
        """Return the context to pay for. Raises PlanError for one that no engine runs."""
        from xlm_plugin.plan.document import PlannedContext

        return PlannedContext(
            tokens=self.ctx
            or min(model.shape.context_tokens or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS),
            sequences=self.parallel,
            ubatch_tokens=self.ubatch or DEFAULT_UBATCH_TOKENS,
            kv_type_k=self.kv_type_k,
            kv_type_v=self.kv_type_v,
            flash_attention=self.flash_attention,
            host_kv=self.host_kv,
        )


_OPTIONS = (
    click.option(
        "--vram", default="auto", metavar="SIZE", help="Budget, such as 6GiB. [default: what is free]"
    ),
    click.option(
        "--ctx", type=_COUNT, metavar="TOKENS", help="Context of all sequences together. [default: 4096]"
    ),
    click.option("--kv-type-k", type=_CACHE_TYPE, default="f16", help="Type of cached keys. [default: f16]"),
    click.option(
        "--kv-type-v", type=_CACHE_TYPE, default="f16", help="Type of cached values. [default: f16]"
    ),
    click.option(
        "--ubatch",
        type=_CountOrAuto(1, _MOST),
        default=512,
        metavar="TOKENS",
        help="Largest step, or auto for the quickest by prediction. [default: 512]",
    ),
    click.option("--parallel", type=_COUNT, default=1, metavar="N", help="Sequences at once. [default: 1]"),
    click.option(
        "--flash-attention/--no-flash-attention", default=True, help="Fused attention. [default: on]"
    ),
    click.option(
        "--host-kv/--no-host-kv",
        default=True,
        help="Keep KV cache that does not fit in host memory. [default: on]",
    ),
    click.option("--device", metavar="NAME", help="A device of this machine, or emulated[:GBps]."),
    click.option(
        "--objective",
        type=click.Choice(get_args(Objective)),
        default="e2e",
        help="What to be quick at: first token, decode, both, many sequences. [default: e2e]",
    ),
    click.option("--strategy", metavar="NAME", help="Fill every tier by this strategy alone."),
)


def planning_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the planning options to ``command``, which gets them as one ``planning`` argument."""

    @wraps(command)
    def with_planning(**values: Any) -> Any:
        planning = PlanningOptions(
            **{field.name: values.pop(field.name) for field in fields(PlanningOptions)}
        )
        return command(planning=planning, **values)

    for option in reversed(_OPTIONS):
        with_planning = option(with_planning)
    return with_planning


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with the model and the machine that it is for."""

    model: ModelGraph
    profile: Profile
    device: Device
    plan: Plan

    @property
    def host(self) -> Host:
        """The machine's host."""
        return self.profile.machine.host

    @property
    def promises_speeds(self) -> bool:
        """Whether step times are worth telling: measured, or by rates published for a real accelerator.

        A device in software is as fast as the CPU that plays it, which rules of thumb do not know.
        """
        from xlm_plugin.machine.detect import is_software

        profile = self.profile
        return profile.is_measured or profile.rates is not None or not is_software(self.device)


@dataclass(frozen=True)
class PlanRequest:
    """A model and a machine to plan for, and everything that is asked of the plan but its budget."""

    manager: PluginManager
    model: ModelGraph
    profile: Profile
    device: Device
    context: PlannedContext
    planning: PlanningOptions

    def plan(self, budget_bytes: int, strategy: str | None = None) -> Plan:
        """Return the plan within ``budget_bytes``, by ``strategy`` alone where it is given.

        Raises like ``make_plan``.
        """
        from xlm_plugin.plan.make import make_plan

        asked = self.planning
        return make_plan(
            self.manager,
            self.model,
            self.profile,
            self.context,
            budget_bytes,
            asked.objective,
            strategy or asked.strategy,
        )

    def seconds(self, plan: Plan) -> float:
        """Return what a typical answer takes under ``plan`` by the simulator."""
        from xlm_plugin.plan.simulated import SimulatedPlan

        simulated = SimulatedPlan(plan, self.model, self.profile)
        steps = simulated.workload.steps(self.planning.objective)
        return sum(count * simulated.step(tokens).step_seconds for tokens, count in steps.items())

    def with_quickest_ubatch(self) -> PlanRequest:
        """Return the request with the largest step that a typical answer is quickest with in the budget.

        A larger one copies weights for more tokens at once, and takes more compute buffer. Where none fits,
        the request stays as it is.
        """
        from xlm_plugin.errors import DoesNotFitError
        from xlm_plugin.plan.target import budget_for

        budget_bytes = budget_for(self.device, self.planning.vram)
        found: list[tuple[float, int, PlanRequest]] = []
        for tokens in UBATCHES:
            context = self.context.model_copy(update={"ubatch_tokens": tokens})
            request = replace(self, context=context)
            with suppress(DoesNotFitError):
                found.append((request.seconds(request.plan(budget_bytes)), tokens, request))
        return min(found, key=lambda each: each[:2])[2] if found else self

    def planned(self) -> Planned:
        """Return the plan within the budget that was asked for.

        Warns on stderr about a context beyond the trained one and a budget beyond what is free.
        """
        from xlm_plugin.plan.target import budget_for

        budget_bytes = budget_for(self.device, self.planning.vram)
        for warning in _warnings(self.model, self.device, self.context, budget_bytes):
            click.echo(f"Warning: {warning}", err=True)
        return Planned(self.model, self.profile, self.device, self.plan(budget_bytes))

    def curve(self) -> BudgetCurve:
        """Return the speed against the budget."""
        from xlm_plugin.plan.curve import budget_curve

        return budget_curve(self.plan, self.model, self.profile, self.context)


def plan_request(ref: str, planning: PlanningOptions, machine: str | None = None) -> PlanRequest:
    """Return what to plan: the model that ``ref`` names, on this machine or a described one."""
    from xlm_plugin.model import read_model
    from xlm_plugin.model.resolve import resolve_model
    from xlm_plugin.plan.target import choose_profile
    from xlm_plugin.plugins import get_plugin_manager

    manager = get_plugin_manager()
    profile, device = choose_profile(manager, planning.device, machine)
    model = read_model(resolve_model(ref))
    request = PlanRequest(manager, model, profile, device, planning.context(model), planning)
    return request.with_quickest_ubatch() if planning.ubatch == AUTO else request


def plan_model(ref: str, planning: PlanningOptions) -> Planned:
    """Return the plan for the model that ``ref`` names, on this machine."""
    return plan_request(ref, planning).planned()


def _warnings(model: ModelGraph, device: Device, context: PlannedContext, budget_bytes: int) -> Iterator[str]:
    from xlm_plugin.units import format_bytes

    tokens = context.tokens // context.sequences
    trained = model.shape.context_tokens
    if 0 < trained < tokens:
        yield f"{tokens} tokens a sequence are more than the {trained} that the model was trained with."
    if not device.emulated and budget_bytes > device.free_bytes:
        yield (
            f"The budget of {format_bytes(budget_bytes)} is more than the "
            f"{format_bytes(device.free_bytes)} that {device.name} has free now."
        )
