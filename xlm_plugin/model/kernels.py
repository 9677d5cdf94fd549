"""Which of ggml's ops a model's tensors go through, and in which shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.model.cache import LayerCache
    from xlm_plugin.model.graph import ModelGraph, Shard, ShardKind, Tensor

_LAST_MATRICES = ("attn_output", "o_proj", "out_proj")

# Nodes beside matrices and attention in llama.cpp's graphs (b10488): norms, rotations, writes to the cache
# and residuals; of experts also what selects and sums them up.
SMALL_OPS: dict[ShardKind, int] = {
    "attn": 8,
    "ffn": 4,
    "experts": 18,
    "shared_experts": 4,
    "ssm": 16,
    "output": 3,
}


def kernel_of(model: ModelGraph, shard: Shard, tensor: Tensor) -> tuple[str, tuple[int, ...]] | None:
    """Return op and shape of the product with ``tensor``, or None for one that is no movable matrix.

    Shapes are ``MUL_MAT`` (width, rows) and ``MUL_MAT_ID`` (width, rows, experts, selected).
    """
    if not tensor.movable or len(tensor.shape) < 2:
        return None
    if shard.kind == "experts":
        if len(tensor.shape) != 3:
            return None
        return "MUL_MAT_ID", (*tensor.shape, max(1, min(model.shape.experts_used, tensor.shape[2])))
    width, rows, *more = tensor.shape
    for extent in more:
        rows *= extent
    return "MUL_MAT", (width, rows)


def attention_head(model: ModelGraph, layer: LayerCache) -> tuple[int, int, int] | None:
    """Return head width, heads and KV heads of ``layer``; None where all heads share a latent row."""
    heads = model.shape.head_count
    if not heads or model.cache.is_latent:
        return None
    width = _query_width(model, layer.layer) // heads
    return (width, heads, max(1, layer.key_width // width)) if width else None


def _query_width(model: ModelGraph, layer: int) -> int:
    for shard in model.shards:
        if shard.kind == "attn" and shard.layer == layer:
            for tensor in shard.tensors:
                if len(tensor.shape) > 1 and any(name in tensor.name for name in _LAST_MATRICES):
                    return tensor.shape[0]
    return model.shape.embedding_width
