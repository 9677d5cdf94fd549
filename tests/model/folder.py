"""Hugging Face folders without weights: a configuration, and safetensors headers over holes."""

from __future__ import annotations

import json
import os
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_DTYPE_BYTES = {"BF16": 2, "F32": 4, "F8_E4M3": 1, "U8": 1, "I32": 4}

Shapes = dict[str, tuple[int, ...]]

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
}


def attention(prefix: str) -> Shapes:
    """Four projections of 4 heads of 16, 2 of them for keys and values."""
    return {
        f"{prefix}.q_proj.weight": (64, 64),
        f"{prefix}.k_proj.weight": (32, 64),
        f"{prefix}.v_proj.weight": (32, 64),
        f"{prefix}.o_proj.weight": (64, 64),
    }


def mlp(prefix: str) -> Shapes:
    return {
        f"{prefix}.gate_proj.weight": (128, 64),
        f"{prefix}.up_proj.weight": (128, 64),
        f"{prefix}.down_proj.weight": (64, 128),
    }


def decoder(prefix: str = "model", *, tied: bool = False) -> Shapes:
    shapes: Shapes = {f"{prefix}.embed_tokens.weight": (256, 64), f"{prefix}.norm.weight": (64,)}
    for layer in range(2):
        shapes[f"{prefix}.layers.{layer}.input_layernorm.weight"] = (64,)
        shapes[f"{prefix}.layers.{layer}.post_attention_layernorm.weight"] = (64,)
        shapes |= attention(f"{prefix}.layers.{layer}.self_attn") | mlp(f"{prefix}.layers.{layer}.mlp")
    return shapes if tied else {**shapes, "lm_head.weight": (256, 64)}


def write_tensors(path: Path, shapes: Shapes, dtypes: Mapping[str, str] | None = None) -> None:
    """Write a safetensors header over a hole; bfloat16 where ``dtypes`` does not say otherwise."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        dtype = (dtypes or {}).get(name, "BF16")
        start, end = end, end + prod(shape) * _DTYPE_BYTES[dtype]
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(path, 8 + len(header) + end)


def write_folder(
    folder: Path, config: object, shapes: Shapes, dtypes: Mapping[str, str] | None = None, *, files: int = 1
) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    if files == 1:
        write_tensors(folder / "model.safetensors", shapes, dtypes)
        return folder
    placed = {name: f"model-{number % files + 1}.safetensors" for number, name in enumerate(shapes)}
    for file in set(placed.values()):
        write_tensors(folder / file, {name: shapes[name] for name in shapes if placed[name] == file}, dtypes)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    return folder
