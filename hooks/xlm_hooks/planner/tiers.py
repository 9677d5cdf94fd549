"""Token tiers: their edges, and which strategy fills each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_hooks.planner.strategies import least_streamed_tokens
from xlm_plugin.errors import PluginError
from xlm_plugin.plan.cost import step_seconds
from xlm_plugin.plan.document import Prediction, Tier
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.strategy import TierSetting

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xlm_plugin.machine.rates import Rates
    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement, PlannedContext
    from xlm_plugin.plan.strategy import Objective, Strategy

SMALL_BATCHES = (4, 16, 64)
_KEPT = (1, 16)
# No rule of thumb tells steps apart that differ by less; the strategies' own rules do.
_ALIKE = 0.1


@dataclass(frozen=True)
class TierFiller:
    """Fills tiers of ``shards`` by the best of ``strategies``; an earlier one wins where they are alike."""

    shards: tuple[Shard, ...]
    strategies: Sequence[Strategy]
    rates: Rates

    def best(self, new_tokens: int, resident: frozenset[str], slot_bytes: int | None = None) -> Tier | None:
        """Return the first strategy's tier whose step is about as short as any, or None where none applies.

        Without ``slot_bytes`` every shard may stream. A tier that copies routed experts for too few
        tokens is the last choice, whatever is predicted.
        """
        largest_bytes = max(device_bytes(shard) for shard in self.shards)
        slot_bytes = largest_bytes if slot_bytes is None else slot_bytes
        setting = TierSetting(new_tokens, resident, slot_bytes, self.rates)
        filled = [tier for tier in (self._fill(strategy, setting) for strategy in self.strategies) if tier]
        candidates = [tier for tier in filled if not self._copies_too_early(tier)] or filled
        longest_seconds = min(map(_seconds, candidates), default=0.0) * (1 + _ALIKE)
        return next((tier for tier in candidates if _seconds(tier) <= longest_seconds), None)

    def streamed(self, tier: Tier) -> list[Shard]:
        """Return the shards that ``tier`` streams."""
        return [shard for shard in self.shards if tier.placements[shard.name] == "stream"]

    def _copies_too_early(self, tier: Tier) -> bool:
        return any(tier.new_tokens < least_streamed_tokens(shard) for shard in self.streamed(tier))

    def _fill(self, strategy: Strategy, setting: TierSetting) -> Tier | None:
        placements = strategy.place(self.shards, setting)
        if placements is None:
            return None
        for shard in self.shards:
            if placements.get(shard.name) not in _possible(shard, setting):
                raise PluginError(
                    f"Strategy '{strategy.name}' gives shard '{shard.name}' no possible placement."
                )
        seconds = step_seconds(self.shards, placements, setting.new_tokens, self.rates)
        streamed = (shard.movable_bytes for shard in self.shards if placements[shard.name] == "stream")
        return Tier(
            new_tokens=setting.new_tokens,
            strategy=strategy.name,
            placements={shard.name: placements[shard.name] for shard in self.shards},
            prediction=Prediction(step_seconds=seconds, link_bytes=sum(streamed)),
        )


def _seconds(tier: Tier) -> float:
    return tier.prediction.step_seconds if tier.prediction else math.inf


def _possible(shard: Shard, setting: TierSetting) -> tuple[Placement, ...]:
    if shard.name in setting.resident:
        return ("pin",)
    return ("stream", "cpu") if device_bytes(shard) <= setting.slot_bytes else ("cpu",)


def tier_edges(shards: Iterable[Shard], context: PlannedContext) -> tuple[int, ...]:
    """Return the tiers' upper bounds: decode, small batches, a whole ubatch.

    One ends where routed experts may begin to stream, so that a shorter prompt does not copy them.
    """
    largest = min(context.ubatch_tokens, context.tokens)
    edges = {1, context.sequences, *SMALL_BATCHES, largest}
    edges |= {least_streamed_tokens(shard) - 1 for shard in shards}
    return tuple(sorted(edge for edge in edges if 1 <= edge <= largest))


def weighed_edges(edges: tuple[int, ...], context: PlannedContext, objective: Objective) -> tuple[int, ...]:
    """Return the tiers for which VRAM is set aside as staging: those that ``objective`` waits for."""
    if objective == "ttft":
        return edges[-1:]
    if objective == "tps":
        return tuple(edge for edge in edges if edge <= context.sequences)
    return edges


def merged(tiers: Sequence[Tier]) -> tuple[Tier, ...]:
    """Return ``tiers`` without those that place everything as the next one does; decode and small
    batches stay apart."""
    return tuple(
        tier
        for at, tier in enumerate(tiers)
        if tier.new_tokens in _KEPT or tier is tiers[-1] or tier.placements != tiers[at + 1].placements
    )
