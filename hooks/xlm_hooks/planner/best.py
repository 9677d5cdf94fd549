"""The planner. What the engine needs comes first, then the best layout, then a strategy per tier."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.planner.expert_cells import expert_cells
from xlm_hooks.planner.fixed import fitting_ledger
from xlm_hooks.planner.patterns import Filler
from xlm_hooks.planner.search import Layout, Search
from xlm_hooks.planner.strategies import Stock, patterns_of
from xlm_hooks.planner.tiers import TierFiller, merged, tier_edges
from xlm_plugin.errors import DoesNotFitError, PlanError
from xlm_plugin.plan.document import ExpertCache, Plan, PlannedModel, PlannedShard, Staging
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.step_costs import cost_model, expert_count
from xlm_plugin.plan.workload import typical_workload
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xlm_hooks.planner.expert_cells import ExpertCells
    from xlm_plugin.errors import XlmError
    from xlm_plugin.machine.document import Device
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import Ledger, PlannedContext, Tier
    from xlm_plugin.plan.strategy import Objective, Strategy


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
        self._filler = TierFiller(
            cost_model(model, self._shards, profile), typical_workload(context), (Stock(), *strategies)
        )

    def plan(self, budget_bytes: int) -> Plan:
        """Return the plan.

        Raises DoesNotFitError where the context alone, or the staging that the strategies insist on, exceeds
        ``budget_bytes``, and PlanError where they cannot place the model at all.
        """
        ledger = fitting_ledger(self._model, self._context, self._device, budget_bytes)
        layout = self._layout(budget_bytes - ledger.total_bytes)
        tiers = self._tiers(layout)
        slot_bytes = max(map(device_bytes, self._streamed(tiers, layout)), default=0)
        staging = Staging(slots=layout.slots if slot_bytes else 0, slot_bytes=slot_bytes)
        spare_bytes = budget_bytes - ledger.total_bytes - layout.bytes
        return self._document(budget_bytes, ledger, layout, staging, tiers, self._cache(layout, spare_bytes))

    def _streamed(self, tiers: Iterable[Tier], layout: Layout) -> list[Shard]:
        """Return the shards that stream whole in some tier."""
        cells = self._cells if layout.cached_experts else None
        from_tokens = cells.whole_from_tokens if cells else 0
        return [
            shard
            for tier in tiers
            for shard in self._shards
            if tier.placements[shard.name] == "stream"
            and not (shard.kind == "experts" and tier.new_tokens < from_tokens)
        ]

    def _cache(self, layout: Layout, spare_bytes: int) -> ExpertCache | None:
        """Return the expert cache: what the layout counts on, and whatever the budget has left."""
        cells = self._cells
        if cells is None or not layout.cached_experts:
            return None
        elsewhere = [s for s, flag in zip(self._shards, layout.resident, strict=True) if not flag]
        most = max(cells.least, sum(map(expert_count, elsewhere)))
        return ExpertCache(
            experts=min(most, cells.least + max(0, spare_bytes) // cells.cell_bytes),
            expert_bytes=cells.cell_bytes,
            whole_from_tokens=cells.whole_from_tokens,
        )

    @cached_property
    def _cells(self) -> ExpertCells | None:
        return None if self._device.unified else expert_cells(self._shards)

    def _layout(self, free_bytes: int) -> Layout:
        sizes = sum(map(device_bytes, self._shards))
        if sizes <= free_bytes:
            return Layout(np.ones(len(self._shards), dtype=bool), 0, 0, sizes, 0.0)
        layout = self._search.best(free_bytes)
        if layout is None:
            raise self._not_placed(free_bytes)
        return layout

    @cached_property
    def _search(self) -> Search:
        filler = self._filler
        patterns = patterns_of(filler.strategies)
        tiers = []
        for tokens, steps in filler.workload.steps(self._objective).items():
            costs = filler.cost_model.costs(filler.workload.load(tokens))
            tiers.append((Filler(self._shards, costs, tokens, patterns), steps))
        return Search(tiers, divisible_experts=not self._device.unified, cells=self._cells)

    def _tiers(self, layout: Layout) -> tuple[Tier, ...]:
        names = frozenset(s.name for s, flag in zip(self._shards, layout.resident, strict=True) if flag)
        tiers = []
        for edge in tier_edges(self._shards, self._context):
            tier = self._filler.best(edge, names, layout.slots, layout.slot_bytes, layout.cached_experts)
            if tier is None:
                raise self._not_placed(layout.bytes)
            tiers.append(tier)
        cells = self._cells if layout.cached_experts else None
        return merged(tiers, [cells.whole_from_tokens - 1] if cells else ())

    def _not_placed(self, free_bytes: int) -> XlmError:
        names = ", ".join(s.name for s in self._filler.strategies if s.name != "stock")
        missing_bytes = self._search.least_bytes - free_bytes
        if missing_bytes <= 0:
            return PlanError(f"No strategy can place this model (tried: {names or 'none'}).")
        return DoesNotFitError(
            f"Streaming needs {format_bytes(missing_bytes)} more than the budget leaves beside the "
            f"context, and no other way was left to try than {names}.",
            "Allow another strategy, give a larger budget or take a smaller context.",
            missing_bytes=missing_bytes,
        )

    def _document(
        self,
        budget_bytes: int,
        ledger: Ledger,
        layout: Layout,
        staging: Staging,
        tiers: tuple[Tier, ...],
        cache: ExpertCache | None,
    ) -> Plan:
        model, device = self._model, self._device
        resident = (s for s, flag in zip(self._shards, layout.resident, strict=True) if flag)
        return Plan(
            model=PlannedModel(
                name=model.name,
                architecture=model.architecture,
                fingerprint=model.fingerprint,
                weight_bytes=model.weight_bytes,
            ),
            device=device.name,
            emulated=device.emulated,
            context=self._context,
            budget_bytes=budget_bytes,
            ledger=ledger.model_copy(
                update={
                    "resident_weight_bytes": sum(map(device_bytes, resident)),
                    "staging_bytes": staging.bytes,
                    "expert_cache_bytes": cache.bytes if cache else 0,
                }
            ),
            staging=staging,
            expert_cache=cache,
            shards=tuple(map(_planned, self._shards)),
            tiers=tiers,
            notes=_notes(model, self._profile, device, tiers),
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


def _notes(model: ModelGraph, profile: Profile, device: Device, tiers: Sequence[Tier]) -> tuple[str, ...]:
    notes = []
    if all(tier.strategy == "stock" for tier in tiers):
        notes.append("Everything fits: xlm steps aside and the engine runs as it would without it.")
    notes.append(
        f"This is for a described machine, {device.name} ({device.description}), with published rates."
        if profile.rates
        else "Step times are predicted by rules of thumb: nothing was measured on this machine."
    )
    if device.emulated:
        notes.append(f"{device.name} is emulated: it computes on the CPU, behind a link of a set speed.")
    if model.generic:
        notes.append(f"The architecture '{model.architecture}' is unknown: its sizes follow a generic rule.")
    return tuple(notes)
