"""Cache rules of published models, from their dimensions alone (layers, heads, head sizes, windows)."""

from __future__ import annotations

from xlm_plugin.model.cache import CacheRule, LayerCache

_STATE_ELEMENT_BYTES = 4


def full(layers: int, key: int, value: int | None = None) -> tuple[LayerCache, ...]:
    """Layers that see the whole context; ``key`` and ``value`` are heads x head size."""
    return tuple(LayerCache(layer, key, key if value is None else value) for layer in range(layers))


def sliding(layers: int, width: int, window: int) -> tuple[LayerCache, ...]:
    """Layers that see the last ``window`` tokens."""
    return tuple(LayerCache(1000 + layer, width, width, window) for layer in range(layers))


def state(layers: int, *, inner: int, groups: int, state_size: int, kernel: int = 4) -> tuple[int, int]:
    """Bytes of convolutions and of SSM states of one sequence (evidence 1.0)."""
    convolution = (kernel - 1) * (inner + 2 * groups * state_size)
    return (
        layers * convolution * _STATE_ELEMENT_BYTES,
        layers * state_size * inner * _STATE_ELEMENT_BYTES,
    )


RULES = {
    "Llama-3.1-8B": CacheRule(full(32, 8 * 128)),
    "Llama-2-70B": CacheRule(full(80, 8 * 128)),
    "Mistral-Small-24B": CacheRule(full(40, 8 * 128)),
    "Qwen2.5-VL-7B": CacheRule(full(28, 4 * 128)),
    "Qwen3-30B-A3B": CacheRule(full(48, 4 * 128)),
    "Qwen3-235B-A22B": CacheRule(full(94, 4 * 128)),
    "Gemma-3-4B": CacheRule(full(5, 4 * 256) + sliding(29, 4 * 256, 1024)),
    "Gemma-3-27B": CacheRule(full(10, 16 * 128) + sliding(52, 16 * 128, 1024)),
    "gemma-4-31B": CacheRule(full(10, 4 * 512) + sliding(50, 16 * 256, 1024)),
    "gpt-oss-20b": CacheRule(full(12, 8 * 64) + sliding(12, 8 * 64, 128)),
    "gpt-oss-120b": CacheRule(full(18, 8 * 64) + sliding(18, 8 * 64, 128)),
    "DeepSeek-V3": CacheRule(full(61, 512 + 64, 0)),
    "DeepSeek-V3 with values": CacheRule(full(61, 512 + 64, 512)),
    "DeepSeek-V3 expanded": CacheRule(full(61, 128 * 192, 128 * 128)),
    "DeepSeek-V2-Lite": CacheRule(full(27, 512 + 64, 0)),
    "DeepSeek-V2-Lite expanded": CacheRule(full(27, 16 * 192, 16 * 128)),
    "Nemotron-3-Nano-30B": CacheRule(full(6, 2 * 128), *state(23, inner=64 * 64, groups=8, state_size=128)),
    "Qwen3.6-35B-A3B": CacheRule(full(10, 2 * 256), *state(30, inner=32 * 128, groups=16, state_size=128)),
    "Qwen3.6-27B": CacheRule(full(16, 4 * 256), *state(48, inner=48 * 128, groups=16, state_size=128)),
    "Qwen3.6-27B draft": CacheRule(full(1, 4 * 256)),
}
