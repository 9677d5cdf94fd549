"""Where every byte goes: what a model takes of the device and of the host in a given context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.errors import UsageError
from xlm_plugin.model.cache import CacheContext
from xlm_plugin.plan.compute import HOST_KV_DEVICE_TOKENS, ComputeBuffer, device_compute, host_compute_bytes
from xlm_plugin.plan.driver import driver_bytes
from xlm_plugin.plan.padding import ALIGNMENT_BYTES, device_bytes

if TYPE_CHECKING:
    from collections.abc import Collection

    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import PlannedContext
    from xlm_plugin.plan.projector import Projector

# llama-server's default (--spec-draft-n-max).
DRAFTED_TOKENS = 3


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes by cause.

    ``small_weight_bytes`` always lie on the device, ``movable_bytes`` are what all shards that a plan may
    place would take there. ``window_kv_bytes`` are those of sliding-window layers. ``draft_compute_bytes``
    are a second compute buffer, of the context that MTP blocks draft in.
    """

    small_weight_bytes: int
    movable_bytes: int
    full_kv_bytes: int
    window_kv_bytes: int
    state_bytes: int
    compute: ComputeBuffer
    draft_compute_bytes: int
    projector_bytes: int
    driver_bytes: int
    host_weight_bytes: int
    host_compute_bytes: int

    @property
    def kv_bytes(self) -> int:
        """KV cache of all layers."""
        return self.full_kv_bytes + self.window_kv_bytes

    @property
    def compute_bytes(self) -> int:
        """The engine's compute buffers on the device."""
        return self.compute.total_bytes + self.draft_compute_bytes

    @property
    def fixed_bytes(self) -> int:
        """What the device must hold whatever is resident."""
        return (
            self.small_weight_bytes
            + self.kv_bytes
            + self.state_bytes
            + self.compute_bytes
            + self.projector_bytes
            + self.driver_bytes
        )

    @property
    def device_bytes(self) -> int:
        """What the device holds with everything resident."""
        return self.fixed_bytes + self.movable_bytes


def estimate(
    model: ModelGraph,
    context: PlannedContext,
    *,
    device: Device | None = None,
    crossing: bool = True,
    virtual_memory: bool = True,
    projector: Projector | None = None,
    image_tokens: int = 0,
    drafted_tokens: int = DRAFTED_TOKENS,
    host_layers: int = 0,
    host_kv_layers: Collection[int] = (),
    host_kv_device_tokens: int = HOST_KV_DEVICE_TOKENS,
) -> MemoryEstimate:
    """Return what ``model`` takes in ``context``.

    ``crossing`` is whether some shards may run on the CPU, which takes larger compute buffers. Without a
    ``device`` the driver's part is left out; ``virtual_memory`` is whether its pool can grow in place.
    ``image_tokens`` is the cap on one image for the ``projector``, ``drafted_tokens`` what MTP blocks draft
    at once where the model was read with them. What a plan's ``host_layers``, ``host_kv_layers`` and
    ``host_kv_device_tokens`` keep in host memory is not counted on the device. Raises UsageError for cache
    types that the model cannot have.
    """
    cache_context = cache_layout(context)
    if model.cache.is_latent and context.kv_type_k != context.kv_type_v:
        raise UsageError(
            f"This model keeps one row for keys and values (MLA): they cannot be {context.kv_type_k} and "
            f"{context.kv_type_v}.",
            "Give the same type for both.",
        )
    by_layer = model.cache.layer_kv_bytes(cache_context)
    copied = [by_layer[layer] for layer in host_kv_layers if layer in by_layer]
    copies = copied and cache_context.step_tokens >= host_kv_device_tokens
    compute = device_compute(
        model, cache_context, crossing=crossing, host_kv_bytes=max(copied) if copies else 0
    )
    on_device = [
        layer
        for layer in model.cache.layers
        if layer.layer >= host_layers and layer.layer not in host_kv_layers
    ]
    drafts = any(shard.layer is not None and shard.layer >= model.shape.layers for shard in model.shards)
    shards = [shard for shard in model.shards if shard.home == "device"]
    language = [shard for shard in shards if shard.kind != "vision"]
    weights = [shard for shard in language if not _is_on_host(shard, host_layers)]
    states = [shard for shard in language if shard.kind == "ssm"]
    host_states = [shard for shard in states if _is_on_host(shard, host_layers)]
    state_bytes = model.cache.state_bytes(context.sequences, drafted_tokens if drafts else 0)
    small = [tensor for shard in weights for tensor in shard.tensors if not tensor.movable]
    projector_bytes = sum(shard.bytes for shard in shards if shard.kind == "vision")
    if projector:
        projector_bytes += projector.weight_bytes + projector.encode_bytes(
            image_tokens, flash_attention=context.flash_attention
        )
    return MemoryEstimate(
        small_weight_bytes=sum(-(-tensor.bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for tensor in small),
        movable_bytes=sum(map(device_bytes, weights)),
        full_kv_bytes=sum(by_layer[layer.layer] for layer in on_device if layer.window_tokens is None),
        window_kv_bytes=sum(by_layer[layer.layer] for layer in on_device if layer.window_tokens is not None),
        state_bytes=state_bytes - state_bytes * len(host_states) // max(1, len(states)),
        compute=compute,
        draft_compute_bytes=compute.total_bytes - compute.state_bytes if drafts else 0,
        projector_bytes=projector_bytes,
        driver_bytes=driver_bytes(device, compute.activation_bytes, virtual_memory=virtual_memory)
        if device
        else 0,
        host_weight_bytes=model.host_weight_bytes
        + sum(shard.bytes for shard in language if _is_on_host(shard, host_layers)),
        host_compute_bytes=host_compute_bytes(model, cache_context, crossing=crossing),
    )


def _is_on_host(shard: Shard, host_layers: int) -> bool:
    return shard.layer is not None and shard.layer < host_layers


def cache_layout(context: PlannedContext) -> CacheContext:
    """Return how llama-server lays ``context`` out: a stream of cells for each sequence."""
    return CacheContext(
        tokens=context.tokens,
        sequences=context.sequences,
        ubatch_tokens=context.ubatch_tokens,
        kv_type_k=context.kv_type_k,
        kv_type_v=context.kv_type_v,
        flash_attention=context.flash_attention,
    )
