"""Published models read from their headers come out with their published numbers (evidence 1.0 to 1.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_plugin.model import read_model
from xlm_plugin.units import GIB

from .described_models import MODELS, describe

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.graph import ModelGraph

_PARAMETERS = {
    "Llama-3.1-8B": 8_030_261_248,
    "Llama-2-70B": 68_976_648_192,
    "Mistral-Small-24B": 23_572_403_200,
    "Gemma-3-27B": 27_009_002_240,
    "Qwen2.5-VL-7B": 7_615_616_512,
    "Qwen3-30B-A3B": 30_532_122_624,
    "Qwen3-235B-A22B": 235_093_634_560,
    "Mixtral-8x7B": 46_702_792_704,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
    "DeepSeek-V3": 671_026_419_200,
    "GLM-4.5-Air": 106_852_251_264,
    "Nemotron-3-Nano-30B": 31_577_940_288,
    "Nemotron-Nano-9B-v2": 8_888_227_328,
}

# Weights that one token reads, in billions: all but the experts that the router leaves out.
_ACTIVE_BILLIONS = {
    "Qwen3-30B-A3B": 3.353,
    "Qwen3-235B-A22B": 22.19,
    "Mixtral-8x7B": 12.88,
    "gpt-oss-20b": 4.19,
    "gpt-oss-120b": 5.71,
    "DeepSeek-V3": 37.55,
    "GLM-4.5-Air": 13.42,
    "Nemotron-3-Nano-30B": 3.58,
}

# GiB of all matrices in one type, the rest in float32.
_Q8_0_AND_F16_GIB = {
    "Llama-3.1-8B": (7.95, 14.96),
    "Mistral-Small-24B": (23.33, 43.91),
    "Qwen3-30B-A3B": (30.25, 56.89),
    "Qwen3-235B-A22B": (232.77, 437.99),
    "Mixtral-8x7B": (46.22, 86.99),
    "Llama-2-70B": (68.26, 128.48),
    "Gemma-3-27B": (26.73, 50.31),
    "Qwen2.5-VL-7B": (7.54, 14.19),
    "GLM-4.5-Air+MTP": (109.38, 205.81),
}

# Bytes per token in float16 of the layers that see everything.
_FULL_CACHE_BYTES_PER_TOKEN = {
    "Llama-3.1-8B": 131_072,
    "Mixtral-8x7B": 131_072,
    "Llama-2-70B": 327_680,
    "Mistral-Small-24B": 163_840,
    "Qwen2.5-VL-7B": 57_344,
    "Qwen3-30B-A3B": 98_304,
    "Qwen3-235B-A22B": 192_512,
    "DeepSeek-V3": 70_272,
    "DeepSeek-V3-expanded": 4_997_120,
    "DeepSeek-V2-Lite": 31_104,
    "DeepSeek-V2-Lite-expanded": 276_480,
    "Gemma-3-27B": 81_920,
    "gpt-oss-20b": 24_576,
    "gpt-oss-120b": 36_864,
    "Nemotron-3-Nano-30B": 6_144,
    "Qwen3.6-35B-A3B": 20_480,
    "gemma-4-31B": 81_920,
}

# Layers that slide and their window.
_SLIDING = {
    "Gemma-3-27B": (52, 1024),
    "Gemma-3-4B": (29, 1024),
    "gpt-oss-20b": (12, 128),
    "gpt-oss-120b": (18, 128),
    "gemma-4-26B-A4B": (25, 1024),
    "gemma-4-31B": (50, 1024),
    "Llama-3.1-8B": (0, None),
}

# MiB of one sequence: convolution and recurrent state.
_STATE_MIB = {
    "Nemotron-3-Nano-30B": (1.62, 46.00),
    "Qwen3.6-35B-A3B": (2.81, 60.00),
    "Llama-3.1-8B": (0, 0),
}


def _read(folder: Path, name: str, matrix_type: str = "F16", expert_type: str | None = None) -> ModelGraph:
    return read_model(describe(name, matrix_type, expert_type).write(folder / "model.gguf"))


@pytest.mark.parametrize("name", _PARAMETERS)
def test_parameters_are_the_published_number(tmp_path: Path, name: str) -> None:
    assert _read(tmp_path, name).parameters == _PARAMETERS[name]


@pytest.mark.parametrize("name", MODELS)
def test_every_weight_is_in_one_shard_or_unused(tmp_path: Path, name: str) -> None:
    model = describe(name, "Q8_0")
    graph = read_model(model.write(tmp_path / "model.gguf"))

    assert graph.weight_bytes + graph.unused_bytes - graph.second_copy_bytes == model.tensor_bytes
    assert len({shard.name for shard in graph.shards}) == len(graph.shards)
    assert not graph.generic


@pytest.mark.parametrize("name", _ACTIVE_BILLIONS)
def test_one_token_reads_the_published_number_of_weights(tmp_path: Path, name: str) -> None:
    graph = _read(tmp_path, name)
    embedding = sum(shard.tensors[0].parameters for shard in graph.shards if shard.kind == "token_embd")
    read = sum(shard.flops_per_token for shard in graph.shards) // 2

    assert (read + embedding) / 1e9 == pytest.approx(_ACTIVE_BILLIONS[name], abs=0.006)


@pytest.mark.parametrize("name", _Q8_0_AND_F16_GIB)
def test_file_sizes_are_the_published_ones(tmp_path: Path, name: str) -> None:
    sizes = []
    for matrix_type in ("Q8_0", "F16"):
        graph = _read(tmp_path, name, matrix_type)
        sizes.append(round((graph.weight_bytes + graph.unused_bytes - graph.second_copy_bytes) / GIB, 2))

    assert tuple(sizes) == _Q8_0_AND_F16_GIB[name]


@pytest.mark.parametrize(("name", "size_gib"), [("gpt-oss-20b", 11.27), ("gpt-oss-120b", 59.02)])
def test_mxfp4_experts_beside_q8_0_have_the_published_size(
    tmp_path: Path, name: str, size_gib: float
) -> None:
    assert round(_read(tmp_path, name, "Q8_0", "MXFP4").weight_bytes / GIB, 2) == size_gib


@pytest.mark.parametrize("name", _FULL_CACHE_BYTES_PER_TOKEN)
def test_full_cache_takes_the_published_bytes_per_token(tmp_path: Path, name: str) -> None:
    full = [layer for layer in _read(tmp_path, name).cache.layers if layer.window_tokens is None]

    assert (
        sum(2 * (layer.key_width + layer.value_width) for layer in full) == _FULL_CACHE_BYTES_PER_TOKEN[name]
    )


@pytest.mark.parametrize("name", _SLIDING)
def test_sliding_layers_are_counted_with_their_window(tmp_path: Path, name: str) -> None:
    count, window_tokens = _SLIDING[name]
    sliding = [layer for layer in _read(tmp_path, name).cache.layers if layer.window_tokens is not None]

    assert len(sliding) == count
    assert {layer.window_tokens for layer in sliding} == ({window_tokens} if count else set())


@pytest.mark.parametrize("name", _STATE_MIB)
def test_recurrent_state_is_the_published_one(tmp_path: Path, name: str) -> None:
    cache = _read(tmp_path, name).cache

    assert (round(cache.state_conv_bytes / 2**20, 2), cache.state_ssm_bytes / 2**20) == _STATE_MIB[name]


def test_c09_only_full_attention_layers_of_a_hybrid_have_a_cache(tmp_path: Path) -> None:
    cache = _read(tmp_path, "Qwen3.6-35B-A3B").cache

    assert [layer.layer for layer in cache.layers] == list(range(3, 40, 4))


def test_layers_that_reuse_a_cache_are_left_out(tmp_path: Path) -> None:
    cache = _read(tmp_path, "gemma-3n-E4B").cache

    assert [layer.layer for layer in cache.layers] == list(range(20))
    assert [layer.layer for layer in cache.layers if layer.window_tokens is None] == [4, 9, 14, 19]


def test_gemma_4_keeps_keys_and_values_apart_though_they_share_a_projection(tmp_path: Path) -> None:
    cache = _read(tmp_path, "gemma-4-26B-A4B").cache

    assert {(layer.key_width, layer.value_width, layer.window_tokens) for layer in cache.layers} == {
        (8 * 256, 8 * 256, 1024),
        (2 * 512, 2 * 512, None),
    }


def test_shape_holds_the_dimensions_that_planning_needs(tmp_path: Path) -> None:
    shape = _read(tmp_path, "Qwen3-30B-A3B").shape

    assert (shape.layers, shape.embedding_width, shape.ffn_width, shape.head_count) == (48, 2048, 768, 32)
    assert (shape.vocabulary, shape.context_tokens) == (151936, 131072)
    assert (shape.experts, shape.experts_used) == (128, 8)
