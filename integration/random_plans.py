"""Plans with random tiers, placements, slots and expert caches, each made from a seed."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from integration.plans import by_kind, plan_by
from xlm_plugin.plan.document import ExpertCache, Tier
from xlm_plugin.plan.placed import sized
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan, PlannedContext, PlannedShard

TIERS = (1, 2, 4, 8, 16, 32)
# How often a shard is pinned, streamed or run on the CPU.
MIXTURES = ((1, 1, 1), (3, 1, 0), (1, 3, 0), (0, 1, 1), (1, 0, 1), (0, 1, 0), (1, 2, 1))
# For what the planner's estimates leave out, such as a cache's spare cell.
SLACK_BYTES = 8 * MIB


class RandomPlans:
    """Random plans of one model; that of a seed is the same every time."""

    def __init__(self, model: ModelGraph, device: Device, context: PlannedContext) -> None:
        self._model = model
        self._pinned = plan_by(model, device, context, by_kind("pin"), by_kind("pin"))
        self._shards = tuple(
            shard.model_copy(update={"experts": self._experts(shard)}) for shard in self._pinned.shards
        )

    def make(self, seed: int) -> Plan:
        """Return the plan of ``seed``."""
        draw = random.Random(f"{self._model.architecture} {seed}")
        tiers = self._tiers(draw)
        plan = self._pinned.model_copy(
            update={"shards": self._shards, "tiers": tiers, "expert_cache": self._expert_cache(draw)}
        )
        return sized(plan, draw.randint(2, 4) if plan.streamed else 0, SLACK_BYTES)

    def _tiers(self, draw: random.Random) -> tuple[Tier, ...]:
        edges = sorted(draw.sample(TIERS, draw.randint(0, 3)))
        mixture = draw.choice(MIXTURES)
        return tuple(
            Tier(
                new_tokens=edge,
                strategy="random",
                placements={
                    shard.name: draw.choices(("pin", "stream", "cpu"), mixture)[0] for shard in self._shards
                },
            )
            for edge in (*edges, self._pinned.context.ubatch_tokens)
        )

    def _expert_cache(self, draw: random.Random) -> ExpertCache | None:
        expert_bytes = [shard.bytes // shard.experts for shard in self._shards if shard.experts]
        if not expert_bytes or draw.random() < 0.25:
            return None
        return ExpertCache(
            experts=draw.choice((8, 12, 32)),
            expert_bytes=max(expert_bytes),
            whole_from_tokens=draw.choice((2, 5, 17, 1000)),
        )

    def _experts(self, planned: PlannedShard) -> int:
        """Return how many experts each tensor of the shard holds, or 0 where some hold none."""
        shard = next(shard for shard in self._model.shards if shard.name == planned.name)
        counts = {
            tensor.shape[2] if len(tensor.shape) > 2 else 0 for tensor in shard.tensors if tensor.movable
        }
        return counts.pop() if shard.kind == "experts" and len(counts) == 1 else 0
