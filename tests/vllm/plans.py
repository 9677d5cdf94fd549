"""A plan to hand around."""

from __future__ import annotations

from xlm_plugin.plan.document import (
    Ledger,
    Plan,
    PlannedContext,
    PlannedModel,
    PlannedShard,
    Staging,
    Tier,
)


def a_plan(shard_bytes: int = 1024) -> Plan:
    """Return a plan of one shard, which is resident."""
    return Plan(
        model=PlannedModel(
            name="tiny", architecture="llama", fingerprint="sha256:00", weight_bytes=shard_bytes
        ),
        device="EMU0",
        emulated=True,
        context=PlannedContext(tokens=256),
        budget_bytes=2 * shard_bytes,
        ledger=Ledger(
            resident_weight_bytes=shard_bytes,
            small_weight_bytes=0,
            staging_bytes=0,
            kv_bytes=0,
            state_bytes=0,
            compute_bytes=0,
        ),
        staging=Staging(slots=0, slot_bytes=0),
        shards=(PlannedShard(name="blk.0.ffn", bytes=shard_bytes, tensors=("ffn",)),),
        tiers=(Tier(new_tokens=1, strategy="gpu_only", placements={"blk.0.ffn": "pin"}),),
    )
