"""The KV cache and the recurrent state of an architecture, from its hyper-parameters and its layers.

The rules are llama.cpp's (b10488: ``llama-hparams.cpp``, ``llama-kv-cache.cpp``, ``llama-model.cpp`` and
``models/*.cpp``); Hugging Face configurations come in under the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.model.architectures import OWN_CACHES, SLIDING_WINDOWS
from xlm_plugin.model.cache import CacheRule, LayerCache

if TYPE_CHECKING:
    from collections.abc import Collection

    from xlm_plugin.model.hyperparameters import Hyperparameters

_STATE_ELEMENT_BYTES = 4


def cache_rule(
    hyper: Hyperparameters,
    *,
    layers: int,
    attention: Collection[int],
    recurrent: Collection[int],
    absorbed: bool,
) -> CacheRule:
    """Return what a context of a model with ``layers`` layers costs; what lies beyond is MTP.

    ``attention`` and ``recurrent`` are the layers with softmax attention and with a recurrent state, as the
    tensor table shows them. ``absorbed`` says that the table has MLA's up-projections apart, so that the
    engine keeps one latent row for all heads.
    """
    if not hyper.integer("attention.causal", 1):
        return CacheRule(())
    shared = range(layers - _reusing_layers(hyper, layers), layers)
    kv_heads = _kv_heads(hyper, layers)
    sliding = sliding_layers(hyper, layers)
    window_tokens = _window_tokens(hyper)
    latent = absorbed or "attention.key_length_mla" in hyper
    caches = []
    for layer in sorted(set(attention).difference(shared)):
        slides = layer < layers and sliding[layer]
        key, value = _latent_widths(hyper) if latent else _head_widths(hyper, slides)
        # Lists may end with the layers; MTP blocks are then like the last of them.
        heads = kv_heads[min(layer, len(kv_heads) - 1)]
        if heads:
            heads = 1 if latent else heads
            caches.append(LayerCache(layer, heads * key, heads * value, window_tokens if slides else None))
    conv, ssm = _state_elements(hyper) if recurrent else (0, 0)
    state_bytes = len(recurrent) * _STATE_ELEMENT_BYTES
    return CacheRule(tuple(caches), conv * state_bytes, ssm * state_bytes)


def sliding_layers(hyper: Hyperparameters, layers: int) -> tuple[bool, ...]:
    """Return which layers see only a window: from a list, a period, or the architecture's own habit."""
    key = "attention.sliding_window_pattern"
    habit = SLIDING_WINDOWS.get(hyper.architecture)
    if not _window_tokens(hyper) or (habit is None and key not in hyper):
        return (False,) * layers
    if hyper.is_list(key):
        return tuple(bool(flag) for flag in hyper.per_layer(key, layers, 0))
    period = hyper.integer(key, habit.period if habit else 0)
    return tuple(period == 0 or layer % period < period - 1 for layer in range(layers))


def _window_tokens(hyper: Hyperparameters) -> int:
    habit = SLIDING_WINDOWS.get(hyper.architecture)
    return hyper.integer("attention.sliding_window", habit.window_tokens if habit else 0)


def _reusing_layers(hyper: Hyperparameters, layers: int) -> int:
    own = OWN_CACHES.get(hyper.architecture, layers)
    return hyper.integer("attention.shared_kv_layers", max(0, layers - own))


def _kv_heads(hyper: Hyperparameters, layers: int) -> tuple[int, ...]:
    key = "attention.head_count_kv"
    return hyper.per_layer(key if key in hyper else "attention.head_count", layers, 0)


def _head_widths(hyper: Hyperparameters, slides: bool) -> tuple[int, int]:
    """Return the elements of one head's key and value."""
    heads = hyper.integer("attention.head_count", 0)
    default = hyper.integer("embedding_length", 0) // heads if heads else 0
    key = hyper.integer("attention.key_length", default)
    value = hyper.integer("attention.value_length", default)
    if slides:
        key = hyper.integer("attention.key_length_swa", key)
        value = hyper.integer("attention.value_length_swa", value)
    return key, value


def _latent_widths(hyper: Hyperparameters) -> tuple[int, int]:
    """Return the elements of MLA's row: the compressed keys and values, and the rotary part of the key."""
    return hyper.integer("attention.kv_lora_rank") + hyper.integer("rope.dimension_count", 0), 0


def _state_elements(hyper: Hyperparameters) -> tuple[int, int]:
    """Return the elements of a recurrent layer's convolution and recurrent state."""
    embedding = hyper.integer("embedding_length", 0)
    if "wkv.head_size" in hyper:
        return hyper.integer("token_shift_count", 2) * embedding, embedding * hyper.integer("wkv.head_size")
    if "shortconv.l_cache" in hyper:
        return embedding * max(0, hyper.integer("shortconv.l_cache") - 1), 0
    history = max(0, hyper.integer("ssm.conv_kernel", 0) - 1)
    if "kda.head_dim" in hyper:
        head, heads = hyper.integer("kda.head_dim"), hyper.integer("attention.head_count")
        return 3 * history * head * heads, head * head * heads
    inner, state = hyper.integer("ssm.inner_size", 0), hyper.integer("ssm.state_size", 0)
    return history * (inner + 2 * hyper.integer("ssm.group_count", 0) * state), state * inner
