"""What a context costs: KV cells per layer by the architecture's own rule, and state per sequence.

The rules are llama.cpp's (b10488: ``llama-context.cpp``, ``llama-kv-cache.cpp``, ``llama-kv-cache-iswa.cpp``,
``llama-memory-recurrent.cpp``); published sizes and the engine's own figures agree to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from xlm_plugin.errors import UsageError

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]

# A context and a sliding-window cache are rounded up to this many cells.
CELL_STEP = 256


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The KV cache of one layer.

    ``key_width`` and ``value_width`` are elements per token (heads x head size); MLA layers hold one
    latent row as the key and no value. ``window_tokens`` is set for sliding-window layers.
    """

    layer: int
    key_width: int
    value_width: int
    window_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CacheContext:
    """A context as an engine lays it out.

    ``tokens`` is the total over ``sequences``. ``unified`` keeps all sequences in one stream of cells
    (llama-server ``--kv-unified``, its default only where the number of slots is left to it).
    ``full_window`` gives sliding-window layers as many cells as the others (``--swa-full``).
    """

    tokens: int
    sequences: int = 1
    ubatch_tokens: int = 512
    kv_type_k: CacheType = "f16"
    kv_type_v: CacheType = "f16"
    flash_attention: bool = True
    unified: bool = False
    full_window: bool = False

    @property
    def streams(self) -> int:
        """Number of caches side by side: one for each sequence, or one for all."""
        return 1 if self.unified else self.sequences

    @property
    def stream_cells(self) -> int:
        """Cells of one stream in a layer that sees the whole context."""
        return _padded(_padded(self.tokens) // self.streams)

    @property
    def step_tokens(self) -> int:
        """New tokens of the largest step."""
        return min(self.ubatch_tokens, self.tokens)

    def window_cells(self, window_tokens: int) -> int:
        """Return the cells of one stream in a layer that sees the last ``window_tokens`` only."""
        if self.full_window:
            return self.stream_cells
        windows = self.sequences if self.unified else 1
        return _padded(min(self.stream_cells, window_tokens * windows + self.step_tokens))

    def cells(self, layer: LayerCache) -> int:
        """Return the cells of ``layer``, all streams together."""
        if layer.window_tokens is None:
            return self.stream_cells * self.streams
        return self.window_cells(layer.window_tokens) * self.streams


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How much memory a context takes.

    ``layers`` lists the layers that own a cache (layers that share another's are left out).
    ``state_conv_bytes`` and ``state_ssm_bytes`` are the recurrent state of one sequence, whatever its length.
    """

    layers: tuple[LayerCache, ...]
    state_conv_bytes: int = 0
    state_ssm_bytes: int = 0

    @property
    def state_bytes_per_sequence(self) -> int:
        """Recurrent state of one sequence."""
        return self.state_conv_bytes + self.state_ssm_bytes

    @property
    def is_latent(self) -> bool:
        """Whether layers hold one latent row for all heads (MLA) and no values."""
        return any(layer.value_width == 0 for layer in self.layers)

    @property
    def widest_value(self) -> int:
        """Elements per token of the widest layer's values."""
        return max((layer.value_width for layer in self.layers), default=0)

    def full_kv_bytes(self, context: CacheContext) -> int:
        """Return the KV bytes of the layers that see the whole context."""
        return self._kv_bytes(context, windowed=False)

    def window_kv_bytes(self, context: CacheContext) -> int:
        """Return the KV bytes of the sliding-window layers."""
        return self._kv_bytes(context, windowed=True)

    def kv_bytes(self, context: CacheContext) -> int:
        """Return all KV bytes. Raises UsageError for a type that the rows cannot have."""
        return self.full_kv_bytes(context) + self.window_kv_bytes(context)

    def kv_bytes_per_token(self, kv_type_k: CacheType = "f16", kv_type_v: CacheType = "f16") -> int:
        """Return the bytes that one more token of context takes: those of the full-context layers."""
        return sum(
            row_bytes(kv_type_k, layer.key_width) + row_bytes(kv_type_v, layer.value_width)
            for layer in self.layers
            if layer.window_tokens is None
        )

    def state_bytes(self, sequences: int = 1, drafted_tokens: int = 0) -> int:
        """Return the recurrent state of all sequences, with a copy for each drafted token to go back to."""
        return self.state_bytes_per_sequence * sequences * (1 + drafted_tokens)

    def layer_kv_bytes(self, context: CacheContext) -> dict[int, int]:
        """Return the KV bytes of each layer that owns a cache. Raises UsageError like ``kv_bytes``."""
        # Without flash attention V lies transposed, and all layers take the widest one's rows.
        widest = 0 if context.flash_attention else self.widest_value
        return {
            layer.layer: context.cells(layer)
            * (
                row_bytes(context.kv_type_k, layer.key_width)
                + row_bytes(context.kv_type_v, max(layer.value_width, widest))
            )
            for layer in self.layers
        }

    def _kv_bytes(self, context: CacheContext, *, windowed: bool) -> int:
        by_layer = self.layer_kv_bytes(context)
        return sum(
            by_layer[layer.layer] for layer in self.layers if (layer.window_tokens is not None) == windowed
        )


def row_bytes(kv_type: CacheType, width: int) -> int:
    """Return the bytes of a row of ``width`` elements.

    Raises UsageError where the type's blocks do not divide the row.
    """
    block_elements, block_bytes = _block(kv_type)
    if width % block_elements:
        raise UsageError(
            f"A cache of type {kv_type} holds {block_elements} elements in a block, which does not divide "
            f"this model's rows of {width}.",
            "Take f16, or a type with smaller blocks.",
        )
    return width // block_elements * block_bytes


@cache
def _block(kv_type: CacheType) -> tuple[int, int]:
    """Return the elements and the bytes of a block."""
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    return GGML_QUANT_SIZES[GGMLQuantizationType[kv_type.upper()]]


def _padded(cells: int) -> int:
    return -(-cells // CELL_STEP) * CELL_STEP
