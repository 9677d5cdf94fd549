"""llama.cpp's compute buffers: what its graph takes while it runs, beside weights and caches.

Held against what b10488 itself reserves for published models (``tests/cases/measured_b10488.csv``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from xlm_plugin.plan.activations import activation_widths, is_delta_net

if TYPE_CHECKING:
    from xlm_plugin.model.cache import CacheContext
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.activations import Widths

# Steps of so many tokens copy KV caches from host memory for attention, as llama.cpp copies weights.
HOST_KV_DEVICE_TOKENS = 32

_FLOAT, _HALF, _INDEX = 4, 2, 8
# Copies of rows on their way between device and host, where a plan runs shards on the CPU.
_CROSSING_ROWS = 3
# Positions, token ids, cache slots and output ids of a token, then the alignment of a hundred tensors.
_IDS_BYTES_PER_TOKEN = 128
_PADDING_BYTES = 16 * 1024
_EXACT_TYPES = ("f32", "f16", "bf16")


@dataclass(frozen=True, slots=True)
class ComputeBuffer:
    """Bytes of a compute buffer by cause, for the largest step: ``n`` new tokens.

    ``input_bytes``: masks of n x cells for full and windowed layers apart, and ids.
    ``activation_bytes``: n rows of floats, of the widest sub-layer and what lives beside it.
    ``score_bytes``: heads x n x cells floats of QK, where flash attention is off.
    ``state_bytes``: copies of one recurrent layer's state.
    ``kv_copy_bytes``: one layer's keys and values in half precision, where they lie otherwise, and as they
    are, where they lie in host memory.
    ``crossing_bytes``: copies of rows that go to shards on the CPU and come back.
    ``logit_bytes``: what rows of the vocabulary take beyond all that, once the layers are done.
    """

    input_bytes: int
    activation_bytes: int
    score_bytes: int = 0
    state_bytes: int = 0
    kv_copy_bytes: int = 0
    crossing_bytes: int = 0
    logit_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """All of the buffer."""
        return sum(getattr(self, field.name) for field in fields(self))


def device_compute(
    model: ModelGraph,
    context: CacheContext,
    *,
    crossing: bool = False,
    outputs: int | None = None,
    host_kv_bytes: int = 0,
) -> ComputeBuffer:
    """Return the device's compute buffer.

    ``crossing`` is whether some shards run on the CPU. ``outputs`` is the number of rows of logits in a
    step; llama-server asks for one of each sequence. ``host_kv_bytes`` is the largest layer's KV cache of
    those that lie in host memory and are copied for a step.
    """
    widths = activation_widths(model)
    tokens = _step_tokens(context)
    scores = 0 if context.flash_attention else model.shape.head_count * context.stream_cells
    phases = (
        _Phase(widths.feed_forward),
        _Phase(widths.attention, score_bytes=_FLOAT * tokens * scores),
        _Phase(widths.recurrent, state_bytes=_state_bytes(model, context)),
    )
    largest = max(phases, key=lambda phase: phase.bytes(tokens))
    layers = ComputeBuffer(
        input_bytes=_input_bytes(model, context, widths),
        activation_bytes=_FLOAT * tokens * (widths.live + largest.width),
        score_bytes=largest.score_bytes,
        state_bytes=largest.state_bytes,
        kv_copy_bytes=_kv_copy_bytes(model, context) + host_kv_bytes,
        crossing_bytes=_FLOAT * tokens * _CROSSING_ROWS * model.shape.embedding_width if crossing else 0,
    )
    rows_bytes = _FLOAT * tokens * (widths.live + widths.attention)
    head_bytes = rows_bytes + _FLOAT * (outputs or context.sequences) * model.shape.vocabulary
    return replace(layers, logit_bytes=max(0, head_bytes - layers.total_bytes))


def host_compute_bytes(model: ModelGraph, context: CacheContext, *, crossing: bool = False) -> int:
    """Return the host's compute buffer: inputs and looked-up rows, or what any sub-layer may take there."""
    if crossing:
        return device_compute(model, context, crossing=True).total_bytes
    widths = activation_widths(model)
    rows = widths.tables + model.shape.embedding_width
    return _input_bytes(model, context, widths) + _FLOAT * _step_tokens(context) * rows


@dataclass(frozen=True, slots=True)
class _Phase:
    """A kind of sub-layer: what it holds per token, and beside that."""

    width: int
    score_bytes: int = 0
    state_bytes: int = 0

    def bytes(self, tokens: int) -> int:
        return _FLOAT * tokens * self.width + self.score_bytes + self.state_bytes


def _step_tokens(context: CacheContext) -> int:
    """Return the tokens of the largest step: as many of each sequence."""
    return -(-context.step_tokens // context.sequences) * context.sequences


def _input_bytes(model: ModelGraph, context: CacheContext, widths: Widths) -> int:
    windows = {layer.window_tokens for layer in model.cache.layers}
    cells = sum(
        context.stream_cells if window is None else context.window_cells(window) for window in windows
    )
    per_token = _IDS_BYTES_PER_TOKEN + cells * (_HALF if context.flash_attention else _FLOAT)
    if not context.flash_attention:
        # Values are stored transposed, each element to a slot of its own.
        per_token += _INDEX * model.cache.widest_value * len(windows)
    rotation_bytes = 0
    if not {context.kv_type_k, context.kv_type_v} <= set(_EXACT_TYPES):
        # Quantised heads are rotated first, by a square matrix of floats for keys and one for values.
        rotation_bytes = 2 * _FLOAT * widths.head**2
    return _step_tokens(context) * per_token + rotation_bytes + _PADDING_BYTES


def _state_bytes(model: ModelGraph, context: CacheContext) -> int:
    """Copies of one layer's state: a gated delta net's twice, Mamba's once, a convolution's once more."""
    recurrent = [shard for shard in model.shards if shard.kind == "ssm"]
    if not recurrent:
        return 0
    copies = 2 if any(map(is_delta_net, recurrent)) else 1
    rule = model.cache
    layer_bytes = (copies * rule.state_ssm_bytes + (copies + 1) * rule.state_conv_bytes) // len(recurrent)
    return layer_bytes * context.sequences


def _kv_copy_bytes(model: ModelGraph, context: CacheContext) -> int:
    """ggml-cuda's flash attention reads f16 only; MLA without it transposes its latent rows."""
    if not context.flash_attention:
        keys, values = int(model.cache.is_latent), 0
    else:
        keys, values = (int(kv_type != "f16") for kv_type in (context.kv_type_k, context.kv_type_v))
    return max(
        (
            _HALF * context.cells(layer) * (keys * layer.key_width + values * layer.value_width)
            for layer in model.cache.layers
        ),
        default=0,
    )
