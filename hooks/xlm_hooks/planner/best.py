"""The planner. What the engine needs comes first, then the best layout, then a strategy per tier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from xlm_hooks.planner.fixed import fixed_ledger, require_fit
from xlm_hooks.planner.host_sides import cache_sides, layer_sides
from xlm_hooks.planner.placer import Placer
from xlm_hooks.planner.strategies import Stock
from xlm_hooks.planner.tiers import TierFiller
from xlm_plugin.errors import PlanError
from xlm_plugin.plan.document import Plan, PlannedModel, PlannedShard
from xlm_plugin.plan.measured_costs import unmeasured_types
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.pinning import can_pin, pinnable_bytes
from xlm_plugin.plan.step_costs import EVERYTHING_ON_DEVICE, cost_model, expert_count
from xlm_plugin.plan.workload import typical_workload
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_hooks.planner.search import Layout
    from xlm_plugin.machine.document import Device
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import Ledger, PlannedContext, Tier
    from xlm_plugin.plan.step_costs import HostSide
    from xlm_plugin.plan.strategy import Objective, Strategy


@dataclass(frozen=True)
class _Option:
    """What could be kept on the host, and the best layout of what it leaves of the budget."""

    host: HostSide
    ledger: Ledger
    placer: Placer
    layout: Layout

    @property
    def is_cramped(self) -> bool:
        """Whether shards have to run on the CPU for lack of a slot that they could stream through."""
        placed = zip(self.placer.shards, self.layout.resident, strict=True)
        return any(not flag and device_bytes(shard) > self.layout.slot_bytes for shard, flag in placed)


def _filled_seconds(option: _Option) -> float:
    return option.placer.filled_seconds(option.layout)


class Planner:
    """Plans ``model`` in ``context`` on the machine of ``profile``, for any budget.

    Raises PlanError where there is no device, or nothing to place.
    """

    def __init__(
        self,
        model: ModelGraph,
        profile: Profile,
        context: PlannedContext,
        objective: Objective,
        strategies: Sequence[Strategy],
    ) -> None:
        device = profile.machine.device
        if device is None:
            raise PlanError(
                "There is no device to plan for.", "Plan for an emulated one with --device emulated."
            )
        self._model, self._profile, self._context, self._objective = model, profile, context, objective
        self._device = device
        self._shards = _placeable(model)
        if not self._shards:
            raise PlanError(f"The model '{model.name}' has no weights that could be placed.")
        self._strategies = (Stock(), *strategies)
        self._placers: dict[HostSide, Placer] = {}

    def plan(self, budget_bytes: int) -> Plan:
        """Return the plan.

        Raises DoesNotFitError where the context alone, or the staging that the strategies insist on, exceeds
        ``budget_bytes``, and PlanError where they cannot place the model at all.
        """
        options = [self._option(host, budget_bytes) for host in self._host_sides(budget_bytes)]
        if self._context.host_kv and any(option.is_cramped for option in options):
            caches = [host for host in cache_sides(self._model) if self._fits(host, budget_bytes)]
            sides = {option.host for option in options}
            options += [self._option(host, budget_bytes) for host in caches[-1:] if host not in sides]
        return self._document(budget_bytes, min(options, key=_filled_seconds) if options[1:] else options[0])

    def _host_sides(self, budget_bytes: int) -> list[HostSide]:
        """Return what could be kept on the host: nothing where the rest fits, else as few caches as fit, or
        all of them, else as few layers as fit."""
        if not self._context.host_kv or self._fits(EVERYTHING_ON_DEVICE, budget_bytes):
            require_fit(self._model, self._context, self._device, budget_bytes)
            return [EVERYTHING_ON_DEVICE]
        caches = [host for host in cache_sides(self._model) if self._fits(host, budget_bytes)]
        if caches:
            return [caches[0], *caches[1:][-1:]]
        for host in layer_sides(self._model):
            if self._fits(host, budget_bytes):
                return [host]
        require_fit(self._model, self._context, self._device, budget_bytes)
        return []

    def _fits(self, host: HostSide, budget_bytes: int) -> bool:
        return self._ledger(host).total_bytes <= budget_bytes

    def _ledger(self, host: HostSide) -> Ledger:
        return fixed_ledger(self._model, self._context, self._device, host)

    def _option(self, host: HostSide, budget_bytes: int) -> _Option:
        ledger, placer = self._ledger(host), self._placer(host)
        return _Option(host, ledger, placer, placer.layout(budget_bytes - ledger.total_bytes))

    def _placer(self, host: HostSide) -> Placer:
        if host not in self._placers:
            costs = cost_model(self._model, self._shards, self._profile, host)
            filler = TierFiller(costs, typical_workload(self._context), self._strategies)
            self._placers[host] = Placer(filler, self._context, self._objective, self._device.unified)
        return self._placers[host]

    def _document(self, budget_bytes: int, option: _Option) -> Plan:
        model, device, host, ledger = self._model, self._device, option.host, option.ledger
        placer, layout = option.placer, option.layout
        tiers = placer.tiers(layout)
        staging = placer.staging(tiers, layout)
        cache = placer.expert_cache(layout, budget_bytes - ledger.total_bytes - layout.bytes)
        resident_bytes = sum(map(device_bytes, placer.resident(layout)))
        return Plan(
            model=PlannedModel.of(model),
            device=device.name,
            emulated=device.emulated,
            context=self._context,
            budget_bytes=budget_bytes,
            ledger=ledger.model_copy(
                update={
                    "resident_weight_bytes": resident_bytes,
                    "staging_bytes": staging.bytes,
                    "expert_cache_bytes": cache.bytes if cache else 0,
                }
            ),
            staging=staging,
            expert_cache=cache,
            host_layers=host.layers,
            host_kv_layers=tuple(sorted(host.kv_layers)),
            shards=tuple(map(_planned, self._shards)),
            tiers=tiers,
            notes=_notes(model, self._profile, device, host, tiers),
        )


@lru_cache(maxsize=1)
def planner_of(
    model: ModelGraph,
    profile: Profile,
    context: PlannedContext,
    objective: Objective,
    strategies: tuple[Strategy, ...],
) -> Planner:
    """Return the planner, the last one where it is asked for again: other budgets share its search."""
    return Planner(model, profile, context, objective, strategies)


def _placeable(model: ModelGraph) -> tuple[Shard, ...]:
    # A vision tower is the engine's own to place: it counts as the projector.
    return tuple(s for s in model.shards if s.home == "device" and s.kind != "vision" and s.movable_bytes)


def _planned(shard: Shard) -> PlannedShard:
    names = tuple(tensor.name for tensor in shard.tensors if tensor.movable)
    return PlannedShard(
        name=shard.name, bytes=device_bytes(shard), tensors=names, experts=expert_count(shard)
    )


def _notes(
    model: ModelGraph, profile: Profile, device: Device, host: HostSide, tiers: Sequence[Tier]
) -> tuple[str, ...]:
    notes = []
    if host.kv_layers:
        notes.append(
            f"The KV cache does not fit: that of {len(host.kv_layers)} of {len(model.cache.layers)} layers "
            "lies in host memory."
        )
    if host.layers:
        notes.append(
            f"The context does not fit: {host.layers} of {model.shape.layers} layers stay on the host whole."
        )
    if all(tier.strategy == "stock" for tier in tiers):
        notes.append("Everything fits: xlm steps aside and the engine runs as it would without it.")
    notes.append(
        f"This is for a described machine, {device.name} ({device.description}), with published rates."
        if profile.rates
        else "Step times are predicted from what 'xlm profile' measured on this machine."
        if profile.is_measured
        else "Step times are predicted by rules of thumb: nothing was measured on this machine."
    )
    notes += profile.changes
    if profile.is_measured and (types := unmeasured_types(model, profile)):
        notes.append(f"Not measured, and predicted by rules of thumb: {', '.join(types)}.")
    if not can_pin(model, profile.machine):
        most = format_bytes(pinnable_bytes(profile.machine.host) or 0)
        notes.append(
            f"Only {most} can be pinned: copies from other memory are slower. "
            "Raise it with 'ulimit -l unlimited'."
        )
    if device.emulated:
        notes.append(f"{device.name} is emulated: it computes on the CPU, behind a link of a set speed.")
    if model.generic:
        notes.append(f"The architecture '{model.architecture}' is unknown: its sizes follow a generic rule.")
    return tuple(notes)
