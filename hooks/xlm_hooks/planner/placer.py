"""The layout and the tiers of one model beside what is kept on the host for good."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.planner.expert_cells import expert_cells
from xlm_hooks.planner.patterns import Filler
from xlm_hooks.planner.search import Layout, Search
from xlm_hooks.planner.strategies import patterns_of
from xlm_hooks.planner.tiers import merged, tier_edges
from xlm_plugin.errors import DoesNotFitError, PlanError
from xlm_plugin.plan.document import ExpertCache, Staging
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.step_costs import expert_count
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_hooks.planner.expert_cells import ExpertCells
    from xlm_hooks.planner.tiers import TierFiller
    from xlm_plugin.errors import XlmError
    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import PlannedContext, Tier
    from xlm_plugin.plan.strategy import Objective


@dataclass(frozen=True)
class Placer:
    """Places shards by ``filler``'s costs and strategies. ``unified`` memory is not split between experts."""

    filler: TierFiller
    context: PlannedContext
    objective: Objective
    unified: bool

    @property
    def shards(self) -> tuple[Shard, ...]:
        """The shards to place."""
        return self.filler.cost_model.shards

    def layout(self, free_bytes: int) -> Layout:
        """Return the best layout of ``free_bytes``.

        Raises DoesNotFitError where they are too few for what the strategies insist on, and PlanError where
        they cannot place the model at all.
        """
        sizes = sum(map(device_bytes, self.shards))
        host = self.filler.cost_model.host
        if sizes <= free_bytes and not (host.layers or host.kv_layers):
            return Layout(np.ones(len(self.shards), dtype=bool), 0, 0, sizes, 0.0)
        layout = self._search.best(free_bytes)
        if layout is None:
            raise self._not_placed(free_bytes)
        return layout

    def resident(self, layout: Layout) -> list[Shard]:
        """Return the shards that are resident in ``layout``."""
        return [shard for shard, flag in zip(self.shards, layout.resident, strict=True) if flag]

    def filled_seconds(self, layout: Layout) -> float:
        """Return what an answer takes in ``layout`` whose prompt fills the context: caches count in full."""
        usual = self.filler.workload
        tokens = self.context.tokens // self.context.sequences
        filled = replace(usual, prompt_tokens=max(1, tokens - usual.answer_tokens))
        patterns = patterns_of(self.filler.strategies)
        slot_bytes = np.array([float(layout.slot_bytes)])
        seconds = 0.0
        for new_tokens, steps in filled.steps(self.objective).items():
            costs = self.filler.cost_model.costs(filled.load(new_tokens))
            filler = Filler(self.shards, costs, new_tokens, patterns, layout.cached_experts)
            found, _ = filler.best(layout.resident[np.newaxis], slot_bytes, max(1, layout.slots))
            seconds += steps * float(found[0])
        return seconds

    def tiers(self, layout: Layout) -> tuple[Tier, ...]:
        """Return the tiers of ``layout``. Raises like ``layout``."""
        names = frozenset(shard.name for shard in self.resident(layout))
        tiers = []
        for edge in tier_edges(self.shards, self.context):
            tier = self.filler.best(edge, names, layout.slots, layout.slot_bytes, layout.cached_experts)
            if tier is None:
                raise self._not_placed(layout.bytes)
            tiers.append(tier)
        cells = self._cells if layout.cached_experts else None
        return merged(tiers, [cells.whole_from_tokens - 1] if cells else ())

    def staging(self, tiers: Sequence[Tier], layout: Layout) -> Staging:
        """Return the ring for what streams whole in some tier."""
        cells = self._cells if layout.cached_experts else None
        from_tokens = cells.whole_from_tokens if cells else 0
        slot_bytes = max(
            (
                device_bytes(shard)
                for tier in tiers
                for shard in self.shards
                if tier.placements[shard.name] == "stream"
                and not (shard.kind == "experts" and tier.new_tokens < from_tokens)
            ),
            default=0,
        )
        return Staging(slots=layout.slots if slot_bytes else 0, slot_bytes=slot_bytes)

    def expert_cache(self, layout: Layout, spare_bytes: int) -> ExpertCache | None:
        """Return the expert cache: what the layout counts on, and whatever the budget has left."""
        cells = self._cells
        if cells is None or not layout.cached_experts:
            return None
        elsewhere = np.flatnonzero(~layout.resident)
        most = max(cells.least, sum(expert_count(self.shards[at]) for at in elsewhere))
        return ExpertCache(
            experts=min(most, cells.least + max(0, spare_bytes) // cells.cell_bytes),
            expert_bytes=cells.cell_bytes,
            whole_from_tokens=cells.whole_from_tokens,
        )

    @cached_property
    def _cells(self) -> ExpertCells | None:
        # Where nothing may run on the CPU, a prompt needs slots for whole experts, which serve decode too.
        only_streams = all(pattern.whole for pattern in patterns_of(self.filler.strategies))
        return None if self.unified or only_streams else expert_cells(self.shards)

    @cached_property
    def _search(self) -> Search:
        filler = self.filler
        patterns = patterns_of(filler.strategies)
        tiers = []
        for tokens, steps in filler.workload.steps(self.objective).items():
            costs = filler.cost_model.costs(filler.workload.load(tokens))
            tiers.append((Filler(self.shards, costs, tokens, patterns), steps))
        return Search(tiers, divisible_experts=not self.unified, cells=self._cells)

    def _not_placed(self, free_bytes: int) -> XlmError:
        names = ", ".join(s.name for s in self.filler.strategies if s.name != "stock")
        missing_bytes = self._search.least_bytes - free_bytes
        if missing_bytes <= 0:
            return PlanError(f"No strategy can place this model (tried: {names or 'none'}).")
        return DoesNotFitError(
            f"Streaming needs {format_bytes(missing_bytes)} more than the budget leaves beside the "
            f"context, and no other way was left to try than {names}.",
            "Allow another strategy, give a larger budget or take a smaller context.",
            missing_bytes=missing_bytes,
        )
