"""A first, simple cost of a step: what each shard takes of the link, the device and the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from xlm_plugin.machine.rates import Rates
    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement


def step_seconds(
    shards: Iterable[Shard], placements: Mapping[str, Placement], new_tokens: int, rates: Rates
) -> float:
    """Return the seconds that ``new_tokens`` take through the weights of ``shards``.

    ``max(link, device) + host``: copies hide behind the device's computing, the host's part does not.
    Attention over the context is left out: it is the same for every placement.
    """
    link = device = host = 0.0
    for shard in shards:
        placement = placements[shard.name]
        if placement == "cpu":
            host += host_seconds(shard, new_tokens, rates)
            continue
        device += device_seconds(shard, new_tokens, rates)
        if placement == "stream":
            link += link_seconds(shard, rates)
    return max(link, device) + host


def link_seconds(shard: Shard, rates: Rates) -> float:
    """Return the seconds that a copy of the whole shard to the device takes."""
    return shard.movable_bytes / rates.link_bytes_per_s


def device_seconds(shard: Shard, new_tokens: int, rates: Rates) -> float:
    """Return the seconds that the device computes: as long as reading or as the arithmetic takes."""
    flops = shard.flops_per_token * computed_tokens(shard, new_tokens)
    return max(read_bytes(shard, new_tokens) / rates.device_bytes_per_s, flops / rates.device_flops_per_s)


def host_seconds(shard: Shard, new_tokens: int, rates: Rates) -> float:
    """Return the seconds that the CPU computes, with a crossing to the host and one back."""
    bytes_per_s = rates.host_experts_bytes_per_s if shard.kind == "experts" else rates.host_bytes_per_s
    flops = shard.flops_per_token * computed_tokens(shard, new_tokens)
    compute = max(read_bytes(shard, new_tokens) / bytes_per_s, flops / rates.host_flops_per_s)
    return compute + 2 * rates.crossing_seconds


def read_bytes(shard: Shard, new_tokens: int) -> float:
    """Return the movable bytes that a step reads.

    Of E experts of which each token selects k, n tokens are expected to meet
    ``E * (1 - (1 - k/E)**n)`` different ones; dense shards are read whole.
    """
    return float(shard.movable_bytes * (1.0 - (1.0 - active_share(shard)) ** new_tokens))


def active_share(shard: Shard) -> float:
    """Return the share of the shard's movable bytes that one token reads: k/E for routed experts."""
    if shard.kind != "experts":
        return 1.0
    experts = max(tensor.shape[-1] for tensor in shard.tensors if tensor.movable)
    small_bytes = shard.bytes - shard.movable_bytes
    # Rounded to whole experts: a token reads all of the router but not all small biases.
    used = round(experts * (shard.active_bytes - small_bytes) / shard.movable_bytes)
    return max(1, used) / experts


def computed_tokens(shard: Shard, new_tokens: int) -> int:
    """Return how many tokens pass through the shard: of a prompt, only the last one needs logits."""
    return 1 if shard.kind == "output" else new_tokens
