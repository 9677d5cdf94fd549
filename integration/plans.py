"""Plans with chosen placements, whatever a planner would think of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_hooks.planner.fixed import fixed_ledger
from xlm_plugin.plan.document import Plan, PlannedContext, PlannedModel, PlannedShard, Staging, Tier

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import Placement

    Place = Callable[[Shard], Placement]

DECODE, PREFILL = 1, 512


def plan_by(
    model: ModelGraph, device: Device, context: PlannedContext, decode: Place, prefill: Place
) -> Plan:
    """Return the plan that places each shard by ``decode`` and ``prefill``, with just the budget it takes."""
    shards = [shard for shard in model.shards if shard.home == "device" and shard.movable_bytes]
    placements = {
        DECODE: {shard.name: decode(shard) for shard in shards},
        PREFILL: {shard.name: prefill(shard) for shard in shards},
    }
    seen = {shard.name: {placed[shard.name] for placed in placements.values()} for shard in shards}
    streamed = [shard.movable_bytes for shard in shards if "stream" in seen[shard.name]]
    staging = Staging(slots=2, slot_bytes=max(streamed)) if streamed else Staging(slots=0, slot_bytes=0)
    ledger = fixed_ledger(model, context).model_copy(
        update={
            "resident_weight_bytes": sum(s.movable_bytes for s in shards if "pin" in seen[s.name]),
            "staging_bytes": staging.bytes,
        }
    )
    return Plan(
        model=PlannedModel(
            name=model.name,
            architecture=model.architecture,
            fingerprint=model.fingerprint,
            weight_bytes=model.weight_bytes,
        ),
        device=device.name,
        emulated=device.emulated,
        context=context,
        budget_bytes=ledger.total_bytes,
        ledger=ledger,
        staging=staging,
        shards=tuple(
            PlannedShard(
                name=shard.name,
                bytes=shard.movable_bytes,
                tensors=tuple(tensor.name for tensor in shard.tensors if tensor.movable),
            )
            for shard in shards
        ),
        tiers=tuple(
            Tier(new_tokens=new_tokens, strategy="fixed", placements=placed)
            for new_tokens, placed in placements.items()
        ),
    )


def by_kind(rest: Placement, **placements: Placement) -> Place:
    """Return the rule that places shards by kind, and the ``rest`` alike."""
    return lambda shard: placements.get(shard.kind, rest)


def alternating(*placements: Placement) -> Place:
    """Return the rule that gives the layers one placement after the other."""
    return lambda shard: placements[(shard.layer or 0) % len(placements)]


SHAPES: dict[str, tuple[Place, Place]] = {
    "all pin": (by_kind("pin"), by_kind("pin")),
    "all stream": (by_kind("stream"), by_kind("stream")),
    "all cpu": (by_kind("cpu"), by_kind("cpu")),
    "mixed": (
        by_kind("pin", ffn="stream", experts="stream", output="cpu"),
        by_kind("pin", ffn="stream", experts="stream", output="cpu"),
    ),
    "layers in turn": (alternating("pin", "stream", "cpu"), alternating("pin", "stream", "cpu")),
    "another plan for prefill": (
        by_kind("pin", ffn="cpu", experts="cpu", output="cpu"),
        by_kind("pin", ffn="stream", experts="stream", output="stream"),
    ),
    "resident only for prefill": (alternating("stream", "cpu"), alternating("pin", "stream")),
}
