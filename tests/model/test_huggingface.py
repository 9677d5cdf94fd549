"""Hugging Face folders come out as the same shards as GGUF files."""

from __future__ import annotations

import json
import os
from math import prod
from typing import TYPE_CHECKING

import pytest

from xlm_plugin.errors import ModelError
from xlm_plugin.model import read_model

from .folder import LLAMA, attention, decoder, mlp, write_folder, write_tensors

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.graph import ModelGraph

    from .folder import Shapes


def _names(graph: ModelGraph) -> list[str]:
    return [shard.name for shard in graph.shards]


def _fault(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model(path)
    assert "\n" not in caught.value.message
    return caught.value.message


def test_a_dense_model_has_the_shards_of_its_gguf(tmp_path: Path) -> None:
    graph = read_model(write_folder(tmp_path, LLAMA, decoder()))

    assert _names(graph) == ["token_embd", "blk.0.attn", "blk.0.ffn", "blk.1.attn", "blk.1.ffn", "output"]
    assert (graph.format, graph.architecture, graph.name) == ("huggingface", "llama", tmp_path.name)
    assert graph.parameters == sum(prod(shape) for shape in decoder().values())
    assert graph.shape.vocabulary == 256
    assert not graph.generic


def test_rows_come_first_in_shapes_and_norms_do_not_move(tmp_path: Path) -> None:
    graph = read_model(write_folder(tmp_path, LLAMA, decoder()))
    (attn,) = (shard for shard in graph.shards if shard.name == "blk.0.attn")
    tensors = {tensor.name: tensor for tensor in attn.tensors}

    assert tensors["model.layers.0.self_attn.k_proj.weight"].shape == (64, 32)
    assert [name for name, tensor in tensors.items() if not tensor.movable] == [
        "model.layers.0.input_layernorm.weight"
    ]


def test_cache_follows_the_configuration(tmp_path: Path) -> None:
    config = {**LLAMA, "head_dim": 32}
    cache = read_model(write_folder(tmp_path, config, decoder())).cache

    assert [(layer.layer, layer.key_width, layer.value_width) for layer in cache.layers] == [
        (0, 64, 64),
        (1, 64, 64),
    ]


def test_a_missing_head_is_a_second_copy_of_the_embedding(tmp_path: Path) -> None:
    graph = read_model(write_folder(tmp_path, LLAMA, decoder(tied=True)))

    assert graph.second_copy_bytes == 256 * 64 * 2


def test_parts_named_by_an_index_are_one_model(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "three").mkdir()
    one = read_model(write_folder(tmp_path / "one", LLAMA, decoder()))
    three = read_model(write_folder(tmp_path / "three", LLAMA, decoder(), files=3))

    assert three.fingerprint == one.fingerprint
    assert len(three.files) == 3


def test_parts_without_an_index_are_one_model(tmp_path: Path) -> None:
    write_folder(tmp_path, LLAMA, decoder(), files=2)
    (tmp_path / "model.safetensors.index.json").unlink()

    assert len(read_model(tmp_path).files) == 2


def test_the_text_model_of_a_vision_model_is_read_beside_its_tower(tmp_path: Path) -> None:
    tower: Shapes = {
        "model.visual.patch_embed.proj.weight": (64, 3, 14, 14),
        "model.visual.blocks.0.attn.qkv.weight": (192, 64),
        "model.visual.blocks.0.mlp.fc1.weight": (128, 64),
        "model.visual.merger.mlp.0.weight": (64, 64),
        "model.audio_tower.layers.0.self_attn.q_proj.weight": (64, 64),
    }
    config = {"model_type": "qwen2_5_vl", "text_config": {**LLAMA, "model_type": "qwen2_5_vl_text"}}
    graph = read_model(write_folder(tmp_path, config, tower | decoder("model.language_model")))

    assert graph.architecture == "qwen2vl"
    assert _names(graph)[:5] == [
        "vision.embed",
        "audio.0.attn",
        "vision.0.attn",
        "vision.0.ffn",
        "vision.projector",
    ]
    assert _names(graph)[5:7] == ["token_embd", "blk.0.attn"]
    assert {shard.kind for shard in graph.shards[:5]} == {"vision"}


def test_routed_and_shared_experts_are_apart_and_the_router_rides(tmp_path: Path) -> None:
    shapes = decoder()
    for expert in range(4):
        shapes |= mlp(f"model.layers.1.mlp.experts.{expert}")
    shapes |= mlp("model.layers.1.mlp.shared_experts")
    shapes["model.layers.1.mlp.gate.weight"] = (4, 64)
    config = {**LLAMA, "model_type": "glm4_moe", "n_routed_experts": 4, "num_experts_per_tok": 1}
    graph = read_model(write_folder(tmp_path, config, shapes))
    (experts,) = (shard for shard in graph.shards if shard.name == "blk.1.experts")

    assert "blk.1.shared_experts" in _names(graph)
    assert [tensor.name for tensor in experts.tensors if not tensor.movable] == [
        "model.layers.1.mlp.gate.weight"
    ]
    assert experts.active_bytes == 2 * (3 * 128 * 64 + 4 * 64)


def test_linear_attention_has_a_state_and_no_cache(tmp_path: Path) -> None:
    shapes = {name: shape for name, shape in decoder().items() if "layers.0.self_attn" not in name}
    shapes |= {
        "model.layers.0.linear_attn.in_proj_qkvz.weight": (192, 64),
        "model.layers.0.linear_attn.out_proj.weight": (64, 64),
        "model.layers.0.linear_attn.conv1d.weight": (128, 1, 4),
        "model.layers.0.linear_attn.A_log": (4,),
        "mtp.fc.weight": (64, 128),
        "mtp.layers.0.self_attn.o_proj.weight": (64, 64),
    }
    config = {
        **LLAMA,
        "model_type": "qwen3_next",
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 16,
        "linear_num_key_heads": 2,
        "linear_value_head_dim": 16,
        "linear_num_value_heads": 4,
    }
    graph = read_model(write_folder(tmp_path, config, shapes))
    used = read_model(tmp_path, use_mtp=True)

    assert _names(graph)[1] == "blk.0.ssm"
    assert [layer.layer for layer in graph.cache.layers] == [1]
    assert graph.cache.state_conv_bytes == 4 * 3 * (64 + 2 * 2 * 16)
    assert graph.cache.state_ssm_bytes == 4 * 16 * 64
    assert graph.unused_bytes == 2 * (64 * 128 + 64 * 64)
    assert _names(used)[-2:] == ["blk.2.attn", "blk.2.mtp"]
    assert [layer.layer for layer in used.cache.layers] == [1, 2]


def test_the_one_mixer_of_a_nemotron_layer_tells_its_kind(tmp_path: Path) -> None:
    shapes: Shapes = {
        "backbone.embeddings.weight": (256, 64),
        "backbone.norm_f.weight": (64,),
        "lm_head.weight": (256, 64),
        "backbone.layers.0.mixer.in_proj.weight": (96, 64),
        "backbone.layers.0.mixer.conv1d.weight": (96, 1, 4),
        "backbone.layers.0.mixer.A_log": (4,),
        "backbone.layers.0.norm.weight": (64,),
        "backbone.layers.1.mixer.up_proj.weight": (128, 64),
        "backbone.layers.1.norm.weight": (64,),
        **attention("backbone.layers.2.mixer"),
        "backbone.layers.3.mixer.experts.0.up_proj.weight": (64, 64),
        "backbone.layers.3.mixer.gate.weight": (8, 64),
    }
    config = {**LLAMA, "model_type": "nemotron_h", "num_hidden_layers": 4, "conv_kernel": 4}
    config |= {"ssm_state_size": 16, "n_groups": 1, "mamba_num_heads": 4, "mamba_head_dim": 16}
    graph = read_model(write_folder(tmp_path, config, shapes))

    assert _names(graph) == ["token_embd", "blk.0.ssm", "blk.1.ffn", "blk.2.attn", "blk.3.experts", "output"]
    assert [layer.layer for layer in graph.cache.layers] == [2]
    assert graph.cache.state_conv_bytes == 4 * 3 * (64 + 2 * 16)


def test_latent_attention_keeps_one_row(tmp_path: Path) -> None:
    shapes = decoder() | {"model.layers.2.eh_proj.weight": (64, 128), "model.layers.2.enorm.weight": (64,)}
    latent = {"kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 16}
    config = {**LLAMA, **latent, "model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    graph = read_model(write_folder(tmp_path, config, shapes))

    assert {(layer.key_width, layer.value_width) for layer in graph.cache.layers} == {(40, 0)}
    assert graph.shape.layers == 2
    assert graph.unused_bytes == 2 * (64 * 128 + 64)


@pytest.mark.parametrize(
    ("config", "windows"),
    [
        ({"model_type": "gemma3_text", "sliding_window": 32, "sliding_window_pattern": 2}, [32, None]),
        ({"model_type": "gemma2", "sliding_window": 32}, [32, None]),
        ({"layer_types": ["full_attention", "sliding_attention"], "sliding_window": 32}, [None, 32]),
        ({"layer_types": ["chunked_attention", "full_attention"], "attention_chunk_size": 64}, [64, None]),
        ({"model_type": "mistral", "sliding_window": 32}, [32, 32]),
        ({"model_type": "mistral", "sliding_window": None}, [None, None]),
        ({"model_type": "qwen2", "sliding_window": 32, "use_sliding_window": False}, [None, None]),
    ],
)
def test_layers_slide_as_the_configuration_says(
    tmp_path: Path, config: dict[str, object], windows: list[int | None]
) -> None:
    cache = read_model(write_folder(tmp_path, LLAMA | config, decoder())).cache

    assert [layer.window_tokens for layer in cache.layers] == windows


def test_gemma_4_has_fewer_and_wider_heads_in_global_layers(tmp_path: Path) -> None:
    config = {
        **LLAMA,
        "model_type": "gemma4_text",
        "layer_types": ["sliding_attention", "full_attention"],
        "sliding_window": 32,
        "head_dim": 16,
        "global_head_dim": 32,
        "num_global_key_value_heads": 1,
    }
    extra: Shapes = {
        "model.embed_tokens_per_layer.weight": (256, 32),
        "model.per_layer_model_projection.weight": (32, 64),
        "model.per_layer_projection_norm.weight": (16,),
    }
    graph = read_model(write_folder(tmp_path, config, decoder() | extra))

    assert [(layer.key_width, layer.window_tokens) for layer in graph.cache.layers] == [(32, 32), (32, None)]
    assert [shard.name for shard in graph.shards if shard.home == "host"] == [
        "token_embd",
        "per_layer_token_embd",
    ]
    assert "per_layer_model_proj" in _names(graph)


def test_older_names_outside_layers_have_a_place(tmp_path: Path) -> None:
    shapes: Shapes = {
        "transformer.wte.weight": (256, 64),
        "transformer.wpe.weight": (512, 64),
        "transformer.h.0.attn.c_attn.weight": (64, 192),
        "transformer.ln_f.weight": (64,),
        "score.weight": (2, 64),
    }
    config = {"model_type": "gpt2", "n_layer": 1, "n_embd": 64, "n_head": 4, "n_positions": 512}
    graph = read_model(write_folder(tmp_path, config, shapes))

    assert _names(graph) == ["token_embd", "other", "position_embd", "blk.0.attn", "output"]
    assert graph.generic


def test_bytes_of_quantised_weights_are_the_headers_and_parameters_are_unpacked(tmp_path: Path) -> None:
    name = "model.layers.0.self_attn.q_proj"
    shapes = {key: shape for key, shape in decoder().items() if not key.startswith(name)}
    shapes |= {f"{name}.qweight": (64, 8), f"{name}.scales": (2, 64)}
    config = {**LLAMA, "quantization_config": {"quant_method": "awq", "bits": 4}}
    graph = read_model(write_folder(tmp_path, config, shapes, {f"{name}.qweight": "I32"}))
    (packed,) = (
        tensor for shard in graph.shards for tensor in shard.tensors if tensor.name.endswith("qweight")
    )

    assert (packed.bytes, packed.parameters, packed.movable) == (64 * 8 * 4, 64 * 64, True)
    assert graph.notes == (
        "The weights are quantised (awq); the number of parameters counts their scales too.",
    )


@pytest.mark.parametrize(
    ("quantisation", "weights"),
    [({"config_groups": {"group_0": {"weights": {"num_bits": 8}}}}, 4), ({"bits": "many"}, 8)],
)
def test_bits_are_found_wherever_the_configuration_has_them(
    tmp_path: Path, quantisation: dict[str, object], weights: int
) -> None:
    name = "model.layers.0.mlp.up_proj.weight_packed"
    config = {**LLAMA, "quantization_config": quantisation}
    graph = read_model(write_folder(tmp_path, config, decoder() | {name: (64, 8)}, {name: "I32"}))
    (packed,) = (tensor for shard in graph.shards for tensor in shard.tensors if tensor.name == name)

    assert packed.parameters == 64 * 8 * weights


def test_a_folder_without_a_configuration_is_refused(tmp_path: Path) -> None:
    assert "has no config.json" in _fault(tmp_path)


def test_a_folder_of_gguf_files_points_at_one(tmp_path: Path) -> None:
    (tmp_path / "model.gguf").touch()
    with pytest.raises(ModelError) as caught:
        read_model(tmp_path)

    assert caught.value.hint == f"Name one of its files, such as {tmp_path / 'model.gguf'}."


def test_a_folder_without_safetensors_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))

    assert "has no safetensors files" in _fault(tmp_path)


def test_a_part_that_the_index_names_and_is_missing_is_named(tmp_path: Path) -> None:
    write_folder(tmp_path, LLAMA, decoder(), files=3)
    (tmp_path / "model-2.safetensors").unlink()

    assert "lacks model-2.safetensors" in _fault(tmp_path)


@pytest.mark.parametrize("index", [{}, {"weight_map": []}, {"weight_map": {"a": "../a.safetensors"}}])
def test_an_index_that_makes_no_sense_is_refused(tmp_path: Path, index: object) -> None:
    write_folder(tmp_path, LLAMA, decoder())
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))

    assert "it does not say which file holds which tensor" in _fault(tmp_path)


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    for name in ("a", "b"):
        write_tensors(tmp_path / f"{name}.safetensors", {"lm_head.weight": (256, 64)})

    assert "holds the tensor 'lm_head.weight' twice" in _fault(tmp_path)


@pytest.mark.parametrize("config", ["", "[]", "{", "[" * 100_000, '{"a": \xff}'])
def test_a_configuration_that_is_no_json_object_is_refused(tmp_path: Path, config: str) -> None:
    write_folder(tmp_path, LLAMA, decoder())
    (tmp_path / "config.json").write_text(config, encoding="latin-1")

    assert any(word in _fault(tmp_path) for word in ("does not hold", "is empty"))


def test_a_configuration_of_absurd_size_is_refused(tmp_path: Path) -> None:
    write_folder(tmp_path, LLAMA, decoder())
    os.truncate(tmp_path / "config.json", 17 << 20)

    assert "is too large" in _fault(tmp_path)


@pytest.mark.parametrize("layers", [None, "two"])
def test_a_configuration_without_layers_is_refused(tmp_path: Path, layers: object) -> None:
    assert "block_count" in _fault(write_folder(tmp_path, {**LLAMA, "num_hidden_layers": layers}, decoder()))


def test_cut_weights_are_refused(tmp_path: Path) -> None:
    path = write_folder(tmp_path, LLAMA, decoder()) / "model.safetensors"
    os.truncate(path, path.stat().st_size - 1)

    assert "is truncated: it has" in _fault(tmp_path)


@pytest.mark.parametrize("content", [b"\x01", b"\xff" * 8, (2**60).to_bytes(8, "little") + b"{}"])
def test_a_header_longer_than_its_file_is_refused(tmp_path: Path, content: bytes) -> None:
    write_folder(tmp_path, LLAMA, decoder())
    (tmp_path / "model.safetensors").write_bytes(content)

    assert "is truncated or no safetensors file" in _fault(tmp_path)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        [],
        {"dtype": "BF16", "shape": [2], "data_offsets": [4, 0]},
        {"dtype": "BF16", "shape": [-2], "data_offsets": [0, 4]},
        {"dtype": "BF16", "shape": ["2"], "data_offsets": [0, 4]},
        {"dtype": 16, "shape": [2], "data_offsets": [0, 4]},
    ],
)
def test_an_entry_that_makes_no_sense_is_named(tmp_path: Path, entry: object) -> None:
    write_folder(tmp_path, LLAMA, decoder())
    header = json.dumps({"lm_head.weight": entry}).encode()
    (tmp_path / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header)

    assert "its entry for 'lm_head.weight' makes no sense" in _fault(tmp_path)


def test_a_folder_that_may_not_be_read_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "iterdir", refuse)
    assert "cannot be read: Permission denied" in _fault(tmp_path)
