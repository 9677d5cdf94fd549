from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from gguf import GGUFWriter

from tests.ollama.fake_ollama import ModelStore, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WIDTH, HEADS, VOCABULARY = 32, 2, 64


@pytest.fixture
def model_bytes(tmp_path: Path) -> bytes:
    """Return a llama of two layers as a GGUF file."""
    writer = GGUFWriter(tmp_path / "tiny.gguf", "llama")
    writer.add_name("tiny")
    writer.add_block_count(2)
    writer.add_context_length(4096)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(2 * WIDTH)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    shapes = {"token_embd": (VOCABULARY, WIDTH), "output": (VOCABULARY, WIDTH), "output_norm": (WIDTH,)}
    for layer in range(2):
        shapes |= {f"blk.{layer}.attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
        shapes |= {f"blk.{layer}.ffn_{part}": (2 * WIDTH, WIDTH) for part in ("gate", "up")}
        shapes |= {f"blk.{layer}.ffn_down": (WIDTH, 2 * WIDTH)}
        shapes |= {f"blk.{layer}.{part}_norm": (WIDTH,) for part in ("attn", "ffn")}
    for name, shape in shapes.items():
        dtype = np.float16 if len(shape) == 2 else np.float32
        writer.add_tensor(f"{name}.weight", np.zeros(shape, dtype=dtype))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return (tmp_path / "tiny.gguf").read_bytes()


def adapter_bytes(folder: Path, type_: str = "adapter") -> bytes:
    """Return a GGUF file of ``type_`` with one tensor, as a person's own adapter or projector has."""
    path = folder / "extra.gguf"
    writer = GGUFWriter(path, "llama")
    writer.add_type(type_)
    writer.add_string("adapter.type", "lora")
    writer.add_tensor("blk.0.attn_q.weight.lora_a", np.zeros((4, WIDTH), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model_bytes: bytes) -> ModelStore:
    """Return Ollama's models on disk: ``tiny`` alone, and ``rich`` with adapter, projector and parameters."""
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "models"))
    found = ModelStore(tmp_path / "models")
    model = found.add_layer("model", model_bytes)
    found.write("tiny", [model])
    adapter = found.add_layer("adapter", adapter_bytes(tmp_path))
    projector = found.add_layer("projector", adapter_bytes(tmp_path, "mmproj"))
    parameters = found.add_layer("params", b'{"num_ctx": 256}')
    found.write("someone/rich:7b", [model, adapter, projector, parameters])
    return found


@pytest.fixture
def server(store: ModelStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelStore]:
    """Return the store of an Ollama server that runs."""
    with serving(store) as url:
        monkeypatch.setenv("OLLAMA_HOST", url)
        yield store
