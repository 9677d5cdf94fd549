"""A random LoRA adapter for any model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gguf
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.graph import ModelGraph

RANK = 8


def write_tiny_lora(path: Path, model: ModelGraph, *, seed: int = 0) -> None:
    """Write an adapter of every matrix that a plan may move, but for the output head, to ``path``."""
    random = np.random.default_rng(seed)
    part = path.with_suffix(".part")
    writer = gguf.GGUFWriter(part, model.architecture)
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string(gguf.Keys.Adapter.TYPE, "lora")
    writer.add_float32(gguf.Keys.Adapter.LORA_ALPHA, float(RANK))
    for tensor in (t for s in model.shards if s.layer is not None for t in s.tensors if t.movable):
        columns, rows, *batch = tensor.shape
        for factor, shape in (("a", (*batch, RANK, columns)), ("b", (*batch, rows, RANK))):
            values = random.standard_normal(shape, dtype=np.float32) / np.sqrt(shape[-1])
            writer.add_tensor(f"{tensor.name}.lora_{factor}", values.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)
