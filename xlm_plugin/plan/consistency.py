"""Where a plan document contradicts itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlm_plugin.plan.document import Plan


def first_fault(plan: Plan) -> str | None:
    """Return the first contradiction in ``plan`` as part of a sentence, or None."""
    return _naming_fault(plan) or _tier_fault(plan) or _host_fault(plan) or _byte_fault(plan)


def _naming_fault(plan: Plan) -> str | None:
    if twice := _first_repeated(shard.name for shard in plan.shards):
        return f"two shards are named '{twice}'"
    if twice := _first_repeated(tensor for shard in plan.shards for tensor in shard.tensors):
        return f"two shards hold the tensor '{twice}'"
    return None


def _tier_fault(plan: Plan) -> str | None:
    edges = [tier.new_tokens for tier in plan.tiers]
    if edges != sorted(set(edges)):
        return "the tiers' new_tokens do not rise"
    names = [shard.name for shard in plan.shards]
    for tier in plan.tiers:
        if unknown := sorted(set(tier.placements) - set(names)):
            return f"tier {tier.new_tokens} places an unknown shard '{unknown[0]}'"
        if missing := [name for name in names if name not in tier.placements]:
            return f"tier {tier.new_tokens} does not place shard '{missing[0]}'"
    return None


def _host_fault(plan: Plan) -> str | None:
    layers = plan.host_kv_layers
    if list(layers) != sorted(set(layers)):
        return "the host_kv_layers do not rise"
    if layers and layers[0] < plan.host_layers:
        return f"layer {layers[0]} lies on the host already, with its KV cache"
    on_host = tuple(f"blk.{layer}." for layer in range(plan.host_layers))
    for tier in plan.tiers:
        for name, placement in tier.placements.items():
            if name.startswith(on_host) and placement != "cpu":
                return f"tier {tier.new_tokens} places shard '{name}' of a host layer as {placement}"
    return None


def _byte_fault(plan: Plan) -> str | None:
    if plan.streamed and plan.staging.slots < 2:
        return f"shard '{min(plan.streamed)}' streams, which takes 2 staging slots or more"
    for shard in plan.shards:
        if shard.name in plan.streamed and shard.bytes > plan.staging.slot_bytes:
            return f"shard '{shard.name}' streams but is larger than a staging slot"
    if plan.ledger.staging_bytes != plan.staging.bytes:
        return "the ledger's staging_bytes are not those of the staging slots"
    if plan.ledger.expert_cache_bytes != (plan.expert_cache.bytes if plan.expert_cache else 0):
        return "the ledger's expert_cache_bytes are not those of the expert cache"
    resident_bytes = sum(shard.bytes for shard in plan.shards if shard.name in plan.resident)
    if plan.ledger.resident_weight_bytes != resident_bytes:
        return "the ledger's resident_weight_bytes are not those of the pinned shards"
    return None


def _first_repeated(names: Iterable[str]) -> str | None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
