"""Token tiers: their edges, and which strategy fills each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from xlm_hooks.planner.patterns import least_streamed_tokens, whole_from_tokens
from xlm_plugin.errors import PluginError
from xlm_plugin.plan.document import Prediction, Tier
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulate import codes, simulate_step
from xlm_plugin.plan.strategy import TierSetting

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement, PlannedContext
    from xlm_plugin.plan.step_costs import CostModel
    from xlm_plugin.plan.strategy import Strategy
    from xlm_plugin.plan.workload import Workload

SMALL_BATCHES = (4, 16, 64)
_KEPT = (1, 16)


@dataclass(frozen=True)
class TierFiller:
    """Fills tiers by the best of ``strategies``; an earlier one wins where steps are as short."""

    cost_model: CostModel
    workload: Workload
    strategies: Sequence[Strategy]

    def best(
        self,
        new_tokens: int,
        resident: frozenset[str],
        slots: int,
        slot_bytes: int,
        cached_experts: int = 0,
    ) -> Tier | None:
        """Return the tier with the shortest predicted step, or None where no strategy applies.

        A tier that copies routed experts for too few tokens is the last choice, whatever is predicted.
        """
        costs = self.cost_model.costs(self.workload.load(new_tokens))
        selecting = self._selecting if cached_experts and new_tokens < self.whole_from_tokens else frozenset()
        setting = TierSetting(new_tokens, resident, slot_bytes, slots, costs, cached_experts, selecting)
        filled = [tier for tier in (self._fill(strategy, setting) for strategy in self.strategies) if tier]
        candidates = [tier for tier in filled if not self._copies_too_early(tier, selecting)] or filled
        return min(candidates, key=_seconds, default=None)

    def streamed(self, tier: Tier, selecting: Collection[str] = ()) -> list[Shard]:
        """Return the shards that ``tier`` streams whole."""
        placed = tier.placements
        shards = self.cost_model.shards
        return [s for s in shards if placed[s.name] == "stream" and s.name not in selecting]

    @cached_property
    def whole_from_tokens(self) -> int:
        """From how many tokens on routed experts stream whole; 0 where a cache cannot serve them."""
        return whole_from_tokens(self.cost_model.shards)

    @cached_property
    def _selecting(self) -> frozenset[str]:
        return frozenset(shard.name for shard in self.cost_model.shards if shard.kind == "experts")

    def _copies_too_early(self, tier: Tier, selecting: Collection[str]) -> bool:
        return any(tier.new_tokens < least_streamed_tokens(shard) for shard in self.streamed(tier, selecting))

    def _fill(self, strategy: Strategy, setting: TierSetting) -> Tier | None:
        shards = self.cost_model.shards
        placements = strategy.place(shards, setting)
        if placements is None:
            return None
        for shard in shards:
            possible = ("cpu",) if self.cost_model.host.keeps(shard) else _possible(shard, setting)
            if placements.get(shard.name) not in possible:
                raise PluginError(
                    f"Strategy '{strategy.name}' gives shard '{shard.name}' no possible placement."
                )
        placed = codes(shards, placements, setting.selecting)
        step = simulate_step(
            setting.costs, placed, max(1, setting.slots), cached_experts=setting.cached_experts
        )
        return Tier(
            new_tokens=setting.new_tokens,
            strategy=strategy.name,
            placements={shard.name: placements[shard.name] for shard in shards},
            prediction=Prediction(step_seconds=step.step_seconds, link_bytes=step.link_bytes),
        )


def _seconds(tier: Tier) -> float:
    return tier.prediction.step_seconds if tier.prediction else math.inf


def _possible(shard: Shard, setting: TierSetting) -> tuple[Placement, ...]:
    if shard.name in setting.resident:
        return ("pin",)
    may_stream = device_bytes(shard) <= setting.slot_bytes or shard.name in setting.selecting
    return ("stream", "cpu") if may_stream else ("cpu",)


def tier_edges(shards: Iterable[Shard], context: PlannedContext) -> tuple[int, ...]:
    """Return the tiers' upper bounds: decode, small batches, a whole ubatch.

    One ends where routed experts may begin to stream, so that a shorter prompt does not copy them.
    """
    largest = min(context.ubatch_tokens, context.tokens)
    edges = {1, context.sequences, *SMALL_BATCHES, largest}
    edges |= {least_streamed_tokens(shard) - 1 for shard in shards}
    return tuple(sorted(edge for edge in edges if 1 <= edge <= largest))


def merged(tiers: Sequence[Tier], kept: Collection[int] = ()) -> tuple[Tier, ...]:
    """Return ``tiers`` without those that place everything as the next one does.

    Decode, small batches and those that ``kept`` names stay apart.
    """
    return tuple(
        tier
        for at, tier in enumerate(tiers)
        if tier.new_tokens in (*_KEPT, *kept)
        or tier is tiers[-1]
        or tier.placements != tiers[at + 1].placements
    )
