"""How many activations of one token llama.cpp's graph holds at once, read off the weight matrices.

ggml takes a buffer back when its last reader is done, so the peak is that of the widest sub-layer. The terms
and the slack for holes that nothing fits into were fitted to what b10488 reserves for 31 published models and
58 random ones, 11,000 contexts in all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlm_plugin.model.graph import ModelGraph, Shard, Tensor

# Rows of the model's width beside a sub-layer's own: the residual, its norm, and slack for one.
_LIVE_ROWS = 3
_LAST_MATRIX = re.compile(r"attn_output|ssm_out|ffn_down|down_proj|o_proj|out_proj|\.w2\.|\.fc2\.")
_CONVOLUTION = re.compile(r"conv1d")
_DELTA_NET = re.compile(r"ssm_beta|ssm_ba\.|in_proj_b")
_JOINED_KEYS = re.compile(r"attn_kv_b\.|kv_b_proj")


@dataclass(frozen=True, slots=True)
class Widths:
    """Float32 elements per token.

    ``live`` are held all the time, and beside them the widest of ``attention`` (without scores),
    ``recurrent`` (without states) and ``feed_forward``. ``tables`` are the rows that the CPU looks up for
    the graph. ``head`` is the size of one head.
    """

    live: int
    attention: int
    recurrent: int
    feed_forward: int
    tables: int
    head: int


def activation_widths(model: ModelGraph) -> Widths:
    """Return the widths of the graph of ``model``.

    Raises ModelError where it has attention without heads, or experts of which none is used.
    """
    row = model.shape.embedding_width
    layered = [shard for shard in model.shards if shard.layer is not None and shard.kind != "vision"]
    model_wide = [shard for shard in model.shards if shard.layer is None and shard.kind == "other"]
    recurrent = [shard for shard in layered if shard.kind == "ssm"]
    attention = [shard for shard in layered if shard.kind == "attn"]
    feed_forward = [shard for shard in layered if shard.kind in ("ffn", "experts", "shared_experts")]
    tables = sum(
        tensor.shape[0] for shard in model.shards if shard.home == "host" for tensor in _matrices(shard)
    )
    if attention and not model.shape.head_count:
        raise _contradicts(model, "attention, but no heads")
    if not model.shape.experts and any(shard.kind == "experts" for shard in feed_forward):
        raise _contradicts(model, "routed experts, but their number is 0")
    # What is wider than a row in the first half of a layer leaves a hole, of which the second uses a third.
    widest = max(map(_last_inputs, (*attention, *recurrent)), default=row)
    return Widths(
        live=_LIVE_ROWS * row + tables + sum(map(_outputs, model_wide)),
        attention=max((_attention_width(shard, model) for shard in attention), default=0),
        recurrent=max(map(_recurrent_width, recurrent), default=0),
        feed_forward=max((_feed_forward_width(shard, model) for shard in feed_forward), default=0)
        + max(0, widest - row) * 2 // 3,
        tables=tables,
        head=max(map(_last_inputs, attention), default=0) // model.shape.head_count if attention else 0,
    )


def _contradicts(model: ModelGraph, fault: str) -> ModelError:
    return ModelError(f"The model '{model.name}' contradicts itself: it has {fault}.", "Get it again.")


def is_delta_net(shard: Shard) -> bool:
    """Return whether a recurrent shard is a gated delta net rather than Mamba."""
    return any(_DELTA_NET.search(tensor.name) for tensor in shard.tensors)


def _attention_width(shard: Shard, model: ModelGraph) -> int:
    """Queries, keys, values and the result. MLA has its queries twice, once as wide as a cache row."""
    width = _outputs(shard)
    if model.cache.is_latent:
        return width + model.shape.head_count * max(layer.key_width for layer in model.cache.layers)
    joined = any(_JOINED_KEYS.search(tensor.name) for tensor in shard.tensors)
    return width + _last_inputs(shard) * (2 if joined else 1)


def _recurrent_width(shard: Shard) -> int:
    """Of Mamba, the convolution's input, with the state before it, lies beside its result."""
    if is_delta_net(shard):
        return _outputs(shard)
    convolution = sum(_rows(tensor) for tensor in _matrices(shard) if _CONVOLUTION.search(tensor.name))
    return _outputs(shard) + convolution + _last_inputs(shard)


def _feed_forward_width(shard: Shard, model: ModelGraph) -> int:
    if shard.kind == "experts":
        return _experts_width(shard, model)
    hidden, row = _last_inputs(shard), model.shape.embedding_width
    # The result fits where up or gate were.
    return _outputs(shard) + hidden - (row if row <= hidden else 0)


def _experts_width(shard: Shard, model: ModelGraph) -> int:
    """Of the k selected experts: up, gate and their product, then results where no freed piece holds them."""
    used, row = model.shape.experts_used, model.shape.embedding_width
    hidden = used * _last_inputs(shard)
    results = used * row
    up = sum(_rows(tensor) for tensor in _matrices(shard) if tensor.movable) * used // model.shape.experts
    up -= results
    gated = up >= 2 * hidden
    if results <= hidden:
        results = 0
    elif gated and results <= 2 * hidden:
        results //= 2
    router = 3 * model.shape.experts
    return up + (hidden if gated else 0) + results + row + router


def _outputs(shard: Shard) -> int:
    return sum(map(_rows, _matrices(shard)))


def _last_inputs(shard: Shard) -> int:
    last = (tensor.shape[0] for tensor in _matrices(shard) if _LAST_MATRIX.search(tensor.name))
    return max(last, default=0)


def _matrices(shard: Shard) -> Iterable[Tensor]:
    return (t for t in shard.tensors if len(t.shape) > 1 and not t.name.endswith("bias"))


def _rows(matrix: Tensor) -> int:
    """Elements of the matrix's result: of all heads or experts where it has three dimensions."""
    return prod(matrix.shape[1:])
