"""Plans with chosen placements for vLLM, whatever a planner would think of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.model import read_model
from xlm_plugin.plan.document import (
    ExpertCache,
    Ledger,
    Plan,
    PlannedContext,
    PlannedModel,
    PlannedShard,
    Staging,
    Tier,
)
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.placed import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement

    Place = Callable[[Shard], Placement]

DECODE, PREFILL = 4, 512


def plan_by(folder: Path, tiers: Mapping[int, Place], *, cached_experts: int = 0, ranks: int = 1) -> Plan:
    """Return the plan that places each shard of the model in ``folder`` by the rule of its tier.

    ``cached_experts`` experts are cached, and selected in all tiers but the last. Each of ``ranks``
    workers has an equal share of every shard.
    """
    model = read_model(folder)
    shards = {shard.name: shard for shard in model.shards if shard.kind in ("attn", "ffn", "experts")}
    planned = tuple(_planned(shard, model.shape.experts, ranks) for shard in shards.values())
    cache = None
    if cached_experts:
        expert_bytes = max(shard.bytes // shard.experts for shard in planned if shard.experts)
        cache = ExpertCache(experts=cached_experts, expert_bytes=expert_bytes, whole_from_tokens=max(tiers))
    everything = Plan(
        model=PlannedModel.of(model),
        device="CPU",
        emulated=True,
        context=PlannedContext(tokens=PREFILL),
        budget_bytes=1 << 40,
        ledger=Ledger(
            resident_weight_bytes=sum(shard.bytes for shard in planned),
            small_weight_bytes=0,
            staging_bytes=0,
            expert_cache_bytes=cache.bytes if cache else 0,
            kv_bytes=0,
            state_bytes=0,
            compute_bytes=0,
        ),
        staging=Staging(slots=0, slot_bytes=0),
        expert_cache=cache,
        shards=planned,
        tiers=(Tier(new_tokens=PREFILL, strategy="all", placements=dict.fromkeys(shards, "pin")),),
    )
    rules = {tokens: _by_name(place, shards) for tokens, place in tiers.items()}
    return placed(everything, rules)


def by_kind(rest: Placement, **placements: Placement) -> Place:
    """Return the rule that places shards by kind, and the ``rest`` alike."""
    return lambda shard: placements.get(shard.kind, rest)


def alternating(*placements: Placement) -> Place:
    """Return the rule that gives the layers one placement after the other."""
    return lambda shard: placements[(shard.layer or 0) % len(placements)]


def _planned(shard: Shard, experts: int, ranks: int) -> PlannedShard:
    return PlannedShard(
        name=shard.name,
        bytes=device_bytes(shard) // ranks,
        tensors=tuple(tensor.name for tensor in shard.tensors if tensor.movable),
        experts=experts if shard.kind == "experts" else 0,
    )


def _by_name(place: Place, shards: Mapping[str, Shard]) -> Callable[[PlannedShard], Placement]:
    return lambda planned: place(shards[planned.name])
