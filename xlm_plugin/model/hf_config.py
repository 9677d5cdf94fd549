"""A Hugging Face ``config.json`` under GGUF's key names, so that one set of rules serves both."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError
from xlm_plugin.model.regular_file import open_regular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from xlm_plugin.model.stored import Value

    Config = Mapping[str, object]

_MAX_CONFIG_BYTES = 16 << 20

_ARCHITECTURES = {
    "deepseek_v2": "deepseek2",
    "deepseek_v3": "deepseek2",
    "gemma3_text": "gemma3",
    "gemma3n_text": "gemma3n",
    "gemma4_text": "gemma4",
    "glm4_moe": "glm4moe",
    "gpt_oss": "gpt-oss",
    "llama4_text": "llama4",
    "phi": "phi2",
    "qwen2_5_vl": "qwen2vl",
    "qwen2_5_vl_text": "qwen2vl",
    "qwen2_moe": "qwen2moe",
    "qwen2_vl": "qwen2vl",
    "qwen2_vl_text": "qwen2vl",
    "qwen3_5": "qwen35",
    "qwen3_5_moe": "qwen35moe",
    "qwen3_5_moe_text": "qwen35moe",
    "qwen3_5_text": "qwen35",
    "qwen3_moe": "qwen3moe",
    "qwen3_next": "qwen3next",
    "qwen3_vl": "qwen3vl",
    "qwen3_vl_moe": "qwen3vlmoe",
    "qwen3_vl_moe_text": "qwen3vlmoe",
    "qwen3_vl_text": "qwen3vl",
}

# GGUF key: what configurations call it; the first that is there counts.
_KEYS = {
    "embedding_length": ("hidden_size", "n_embd", "d_model"),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "context_length": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("global_head_dim", "head_dim", "attention_head_dim"),
    "attention.value_length": ("global_head_dim", "head_dim", "attention_head_dim"),
    "attention.shared_kv_layers": ("num_kv_shared_layers",),
    "expert_count": ("num_local_experts", "num_experts", "n_routed_experts"),
    "expert_used_count": ("num_experts_per_tok", "num_experts_per_token", "top_k_experts"),
    "expert_feed_forward_length": ("moe_intermediate_size", "expert_intermediate_size"),
    "nextn_predict_layers": ("num_nextn_predict_layers", "mtp_num_hidden_layers"),
    "ssm.conv_kernel": ("linear_conv_kernel_dim", "conv_kernel", "mamba_d_conv"),
    "ssm.state_size": ("linear_key_head_dim", "ssm_state_size", "mamba_d_state", "state_size"),
    "ssm.group_count": ("linear_num_key_heads", "mamba_n_groups", "n_groups"),
    "shortconv.l_cache": ("conv_L_cache",),
}
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers")

# Their window, where there is one, is that of every layer.
_ALL_SLIDE = ("mistral", "mixtral", "phi3", "starcoder2")
_SLIDING_TYPES = ("sliding_attention", "chunked_attention")


def read_json(path: Path, most_bytes: int = _MAX_CONFIG_BYTES) -> dict[str, object]:
    """Return the JSON object in the file ``path``. Raises ModelError where there is none."""
    with open_regular(path) as (stream, size):
        if size > most_bytes:
            raise ModelError(f"{path} is too large to be what its name says.")
        return parse_json(stream.read(), str(path))


def parse_json(text: bytes, where: str) -> dict[str, object]:
    """Return the JSON object in ``text``. Raises ModelError, naming ``where``, if it holds none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ModelError(f"{where} is damaged: it does not hold JSON.", "Download it again.") from None
    if not isinstance(value, dict):
        raise ModelError(f"{where} is damaged: it does not hold a JSON object.", "Download it again.")
    return value


def text_config(config: Config) -> Config:
    """Return the part of ``config`` that describes the language model."""
    for key in ("text_config", "llm_config", "language_config"):
        nested = config.get(key)
        if isinstance(nested, dict):
            return nested
    return config


def quantisation_config(config: Config) -> Config:
    """Return how the weights are quantised; empty where they are not."""
    found = config.get("quantization_config", text_config(config).get("quantization_config"))
    return found if isinstance(found, dict) else {}


def gguf_metadata(config: Config) -> dict[str, Value]:
    """Return ``config`` as GGUF metadata: ``general.architecture`` and that architecture's own keys."""
    text = text_config(config)
    model_type = str(text.get("model_type", config.get("model_type", "unknown")))
    architecture = _ARCHITECTURES.get(model_type, model_type)
    values: dict[str, object] = {key: _first(text, names) for key, names in _KEYS.items()}
    values |= _blocks(text) | _latent(text) | _sliding(text, model_type) | _state(text) | _global_heads(text)
    metadata: dict[str, Value] = {"general.architecture": architecture}
    if quantisation := quantisation_config(config):
        metadata["general.quantization"] = str(quantisation.get("quant_method", "unknown"))
    for key, value in values.items():
        if isinstance(value, list):
            metadata[f"{architecture}.{key}"] = tuple(value)
        elif isinstance(value, bool | int | float | str):
            metadata[f"{architecture}.{key}"] = value
    return metadata


def _first(config: Config, names: tuple[str, ...]) -> object:
    return next((config[name] for name in names if config.get(name) is not None), None)


def _integer(config: Config, *names: str, default: int = 0) -> int:
    value = _first(config, names)
    return value if isinstance(value, int) else default


def _blocks(text: Config) -> dict[str, object]:
    layers = _first(text, _LAYERS)
    if not isinstance(layers, int):
        return {"block_count": layers}
    return {"block_count": layers + _integer(text, *_KEYS["nextn_predict_layers"])}


def _latent(text: Config) -> dict[str, object]:
    if text.get("kv_lora_rank") is None:
        return {}
    rotary = _integer(text, "qk_rope_head_dim")
    return {
        "attention.kv_lora_rank": text["kv_lora_rank"],
        "attention.key_length_mla": _integer(text, "qk_nope_head_dim") + rotary,
        "rope.dimension_count": rotary,
    }


def _sliding(text: Config, model_type: str) -> dict[str, object]:
    types = text.get("layer_types")
    window = _first(text, ("sliding_window", "attention_chunk_size"))
    if text.get("use_sliding_window") is False:
        return {}
    if isinstance(types, list):
        pattern: object = [kind in _SLIDING_TYPES for kind in types]
    elif model_type in _ALL_SLIDE:
        pattern = 0
    else:
        pattern = _first(text, ("sliding_window_pattern", "_sliding_window_pattern"))
    return {"attention.sliding_window": window, "attention.sliding_window_pattern": pattern}


def _global_heads(text: Config) -> dict[str, object]:
    """Gemma 4: layers that see everything have fewer and wider heads than sliding ones."""
    types, heads = text.get("layer_types"), text.get("num_global_key_value_heads")
    values: dict[str, object] = {}
    if text.get("global_head_dim") is not None:
        values |= dict.fromkeys(
            ("attention.key_length_swa", "attention.value_length_swa"), text.get("head_dim")
        )
    if isinstance(types, list) and heads is not None:
        sliding = text.get("num_key_value_heads")
        values["attention.head_count_kv"] = [sliding if kind in _SLIDING_TYPES else heads for kind in types]
    return values


def _state(text: Config) -> dict[str, object]:
    value_heads = _integer(text, "linear_num_value_heads", "mamba_num_heads", "mamba_n_heads")
    head = _integer(text, "linear_value_head_dim", "mamba_head_dim", "mamba_d_head")
    expand = _integer(text, "mamba_expand", "expand", default=2)
    inner = value_heads * head or expand * _integer(text, "hidden_size")
    return {"ssm.inner_size": inner}
