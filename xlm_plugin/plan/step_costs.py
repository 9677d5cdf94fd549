"""What each shard takes of the link, the device and the host in one step, wherever it is placed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from xlm_plugin.errors import PlanError
from xlm_plugin.machine.rates import described_rates
from xlm_plugin.model.cache import row_bytes
from xlm_plugin.plan.compute import HOST_KV_DEVICE_TOKENS
from xlm_plugin.plan.pinning import PAGEABLE_LINK_SHARE, can_pin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.machine.rates import Rates
    from xlm_plugin.model.cache import CacheType, LayerCache
    from xlm_plugin.model.graph import ModelGraph, Shard

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_LAST_MATRICES = ("attn_output", "o_proj", "out_proj")


@dataclass(frozen=True, slots=True)
class StepLoad:
    """One engine step: ``new_tokens`` of ``sequences`` together, each after ``cached_tokens`` of its own."""

    new_tokens: int
    cached_tokens: int = 0
    sequences: int = 1
    kv_type_k: CacheType = "f16"
    kv_type_v: CacheType = "f16"


@dataclass(frozen=True, slots=True)
class HostSide:
    """What a plan keeps on the host for good: the first ``layers`` whole, of ``kv_layers`` the KV cache."""

    layers: int = 0
    kv_layers: frozenset[int] = frozenset()

    def keeps(self, shard: Shard) -> bool:
        """Whether the shard belongs to a host layer."""
        return shard.layer is not None and shard.layer < self.layers

    def keeps_cache(self, shard: Shard) -> bool:
        """Whether the shard attends to a KV cache in host memory."""
        return shard.kind == "attn" and (self.keeps(shard) or shard.layer in self.kv_layers)


EVERYTHING_ON_DEVICE = HostSide()


@dataclass(frozen=True, slots=True)
class StepCosts:
    """Seconds of one step, one element for each shard in execution order.

    ``device`` and ``host`` are those of the weights, ``device_cache`` and ``host_cache`` those of attention
    over a KV cache that lies there (0 for shards without one). ``copy`` moves the whole shard over the
    link: ``copy_bytes``. Of routed experts, ``experts`` in number (0 in other shards), the step selects
    ``selected_share``. Shards ``on_host`` cannot be placed elsewhere. ``cache_on_host`` are those whose KV
    cache lies in host memory and is attended to there; of others that lie there ``cache_copy_bytes`` are
    copied to the device, which ``device_cache`` includes.
    """

    device: Floats
    host: Floats
    device_cache: Floats
    host_cache: Floats
    copy: Floats
    copy_bytes: Floats
    rates: Rates
    experts: Floats = field(default_factory=lambda: np.zeros(1))
    selected_share: Floats = field(default_factory=lambda: np.ones(1))
    on_host: Flags = field(default_factory=lambda: np.zeros(1, dtype=bool))
    cache_on_host: Flags = field(default_factory=lambda: np.zeros(1, dtype=bool))
    cache_copy_bytes: Floats = field(default_factory=lambda: np.zeros(1))


@dataclass(frozen=True)
class CostModel:
    """Costs of steps through ``shards`` of ``model`` on a machine with ``rates``."""

    model: ModelGraph
    shards: tuple[Shard, ...]
    rates: Rates
    host: HostSide = EVERYTHING_ON_DEVICE

    def costs(self, load: StepLoad) -> StepCosts:
        """Return the costs of a step of ``load``: as long as reading or as the arithmetic takes."""
        rates, traits = self.rates, self._traits
        # Logits are for the last token of each sequence only.
        computed = np.where(traits.output, min(load.sequences, load.new_tokens), load.new_tokens)
        flops = traits.flops * computed
        selected_share = 1.0 - (1.0 - traits.active_share) ** load.new_tokens
        read = traits.bytes * selected_share
        host_bytes_per_s = np.where(
            traits.experts > 0, rates.host_experts_bytes_per_s, rates.host_bytes_per_s
        )
        experts_flops_per_s = rates.device_experts_flops_per_s or rates.device_flops_per_s
        device_flops_per_s = np.where(traits.experts > 0, experts_flops_per_s, rates.device_flops_per_s)
        cache_bytes, cache_flops = self._attention(load)
        on_host, cached_there = self._on_host
        copied = cached_there & ~on_host & (load.new_tokens >= HOST_KV_DEVICE_TOKENS)
        cache_copy_bytes = np.where(copied, cache_bytes, 0.0)
        return StepCosts(
            device=np.maximum(read / rates.device_bytes_per_s, flops / device_flops_per_s)
            + rates.layer_seconds * traits.layer_share,
            host=np.maximum(read / host_bytes_per_s, flops / rates.host_flops_per_s),
            device_cache=np.maximum(
                cache_bytes / rates.device_bytes_per_s, cache_flops / rates.device_flops_per_s
            )
            + cache_copy_bytes / rates.link_bytes_per_s,
            host_cache=np.maximum(
                cache_bytes / rates.host_attention_bytes_per_s, cache_flops / rates.host_flops_per_s
            ),
            copy=traits.bytes / rates.link_bytes_per_s,
            copy_bytes=traits.bytes,
            rates=rates,
            experts=traits.experts,
            selected_share=selected_share,
            on_host=on_host,
            cache_on_host=cached_there & ~copied,
            cache_copy_bytes=cache_copy_bytes,
        )

    def _attention(self, load: StepLoad) -> tuple[Floats, Floats]:
        """Return the cache bytes that attention reads and its floating-point operations.

        Scores and the weighted sum take ``4 * queries * cells * width`` operations; within the step a
        token sees half of the others.
        """
        traits = self._traits
        each = load.new_tokens / load.sequences
        seen = np.minimum(load.cached_tokens + each / 2, traits.window)
        cells = np.minimum(load.cached_tokens + each, traits.window + each)
        cell_bytes = np.array([_cell_bytes(cache, load) for cache in traits.caches])
        return load.sequences * cells * cell_bytes, 4 * load.new_tokens * seen * traits.query_width

    @cached_property
    def _on_host(self) -> tuple[Flags, Flags]:
        """Return which shards stay on the host, and whose KV cache lies there."""
        return (
            np.array([self.host.keeps(shard) for shard in self.shards]),
            np.array([self.host.keeps_cache(shard) for shard in self.shards]),
        )

    @cached_property
    def _traits(self) -> _Traits:
        return _traits(self.model, self.shards)


def cost_model(
    model: ModelGraph, shards: tuple[Shard, ...], profile: Profile, host: HostSide = EVERYTHING_ON_DEVICE
) -> CostModel:
    """Return the cost model of ``shards`` on the machine of ``profile``, by measurements, else by its rates,
    else by rules of thumb.

    Raises PlanError where the machine has no device.
    """
    device = profile.machine.device
    if device is None:
        raise PlanError("There is no device to plan for.", "Plan for an emulated one with --device emulated.")
    if profile.is_measured:
        from xlm_plugin.plan.measured_costs import measured_cost_model

        return measured_cost_model(model, shards, profile, host)
    rates = profile.rates or described_rates(profile.machine.host, device)
    if not can_pin(model, profile.machine):
        rates = replace(rates, link_bytes_per_s=rates.link_bytes_per_s * PAGEABLE_LINK_SHARE)
    return CostModel(model, shards, rates, host)


@dataclass(frozen=True)
class _Traits:
    """What does not depend on the step. ``window`` is infinite where a layer sees all."""

    bytes: Floats
    active_share: Floats
    flops: Floats
    experts: Floats
    output: NDArray[np.bool_]
    layer_share: Floats
    query_width: Floats
    window: Floats
    caches: tuple[LayerCache | None, ...]


def expert_count(shard: Shard) -> int:
    """Return the number of routed experts; 0 for other shards, and where tensors disagree."""
    if shard.kind != "experts":
        return 0
    counts = {t.shape[-1] if len(t.shape) > 2 else 0 for t in shard.tensors if t.movable}
    return counts.pop() if len(counts) == 1 else 0


def active_share(shard: Shard) -> float:
    """Return the share of the shard's movable bytes that one token reads: k/E for routed experts.

    Of E experts of which each token selects k, n tokens are expected to meet
    ``E * (1 - (1 - k/E)**n)`` different ones.
    """
    if shard.kind != "experts":
        return 1.0
    experts = max(tensor.shape[-1] for tensor in shard.tensors if tensor.movable)
    small_bytes = shard.bytes - shard.movable_bytes
    # Rounded to whole experts: a token reads all of the router but not all small biases.
    used = round(experts * (shard.active_bytes - small_bytes) / shard.movable_bytes)
    return max(1, used) / experts


def _traits(model: ModelGraph, shards: Sequence[Shard]) -> _Traits:
    by_layer = {layer.layer: layer for layer in model.cache.layers}
    caches = tuple(
        by_layer.get(shard.layer) if shard.kind == "attn" and shard.layer is not None else None
        for shard in shards
    )
    layers = [shard.layer for shard in shards]
    return _Traits(
        bytes=np.array([float(shard.movable_bytes) for shard in shards]),
        active_share=np.array([active_share(shard) for shard in shards]),
        flops=np.array([float(shard.flops_per_token) for shard in shards]),
        experts=np.array([float(expert_count(shard)) for shard in shards]),
        output=np.array([shard.kind == "output" for shard in shards]),
        layer_share=np.array([0.0 if layer is None else 1 / layers.count(layer) for layer in layers]),
        query_width=np.array(
            [_query_width(model, shard, cache) for shard, cache in zip(shards, caches, strict=True)]
        ),
        window=np.array([cache.window_tokens or np.inf if cache else np.inf for cache in caches]),
        caches=caches,
    )


def _query_width(model: ModelGraph, shard: Shard, cache: LayerCache | None) -> float:
    if cache is None:
        return 0.0
    if model.cache.is_latent:
        return model.shape.head_count * cache.key_width
    matrices = (tensor for tensor in shard.tensors if len(tensor.shape) > 1)
    last = (t.shape[0] for t in matrices if any(name in t.name for name in _LAST_MATRICES))
    return max(last, default=model.shape.embedding_width)


def _cell_bytes(cache: LayerCache | None, load: StepLoad) -> int:
    if cache is None:
        return 0
    return row_bytes(load.kv_type_k, cache.key_width) + row_bytes(load.kv_type_v, cache.value_width)
