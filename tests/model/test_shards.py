"""How tensors become shards: what moves, what rides along, what stays on the host, what is not loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from xlm_plugin.model import read_model
from xlm_plugin.units import MIB

from .described import Described
from .described_models import describe
from .tiny import tiny

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.graph import ModelGraph, Shard


def _read(folder: Path, model: Described, *, use_mtp: bool = False) -> ModelGraph:
    return read_model(model.write(folder / "model.gguf"), use_mtp=use_mtp)


def _shard(graph: ModelGraph, name: str) -> Shard:
    return next(shard for shard in graph.shards if shard.name == name)


def _riders(shard: Shard) -> set[str]:
    return {tensor.name.removeprefix(f"blk.{shard.layer}.") for tensor in shard.tensors if not tensor.movable}


def test_shards_are_in_execution_order(tmp_path: Path) -> None:
    graph = _read(tmp_path, describe("GLM-4.5-Air"))

    assert [shard.name for shard in graph.shards[:6]] == [
        "token_embd",
        "blk.0.attn",
        "blk.0.ffn",
        "blk.1.attn",
        "blk.1.experts",
        "blk.1.shared_experts",
    ]
    assert graph.shards[-1].name == "output"


def test_norms_biases_sinks_and_the_router_ride_and_do_not_move(tmp_path: Path) -> None:
    graph = _read(tmp_path, describe("gpt-oss-20b", "Q8_0", "MXFP4"))

    assert _riders(_shard(graph, "blk.0.attn")) == {
        "attn_norm.weight",
        "attn_q.bias",
        "attn_k.bias",
        "attn_v.bias",
        "attn_output.bias",
        "attn_sinks.weight",
        "post_attention_norm.weight",
    }
    assert _riders(_shard(graph, "blk.0.experts")) == {
        "ffn_gate_inp.weight",
        "ffn_gate_inp.bias",
        "ffn_gate_exps.bias",
        "ffn_up_exps.bias",
        "ffn_down_exps.bias",
    }
    assert _riders(_shard(graph, "output")) == {"output_norm.weight"}


def test_movable_bytes_are_those_of_the_matrices(tmp_path: Path) -> None:
    attention = _shard(_read(tmp_path, describe("Llama-3.1-8B")), "blk.0.attn")

    assert attention.movable_bytes == 2 * (2 * 4096 * 4096 + 2 * 4096 * 1024)
    assert attention.bytes == attention.movable_bytes + 4 * 4096


def test_linear_attention_and_its_projections_are_one_ssm_shard(tmp_path: Path) -> None:
    graph = _read(tmp_path, describe("Qwen3.6-27B"))
    linear = _shard(graph, "blk.0.ssm")

    assert {"blk.0.attn_qkv.weight", "blk.0.attn_gate.weight", "blk.0.ssm_out.weight"} <= {
        tensor.name for tensor in linear.tensors if tensor.movable
    }
    assert {"ssm_a", "ssm_conv1d.weight", "ssm_dt.bias", "ssm_norm.weight"} <= _riders(linear)
    assert [shard.name for shard in graph.shards if shard.layer == 3] == ["blk.3.attn", "blk.3.ffn"]


def test_a_norm_without_a_mixer_of_its_own_rides_with_what_follows(tmp_path: Path) -> None:
    graph = _read(tmp_path, describe("Nemotron-Nano-9B-v2"))

    assert [shard.name for shard in graph.shards[1:4]] == ["blk.0.ssm", "blk.1.ffn", "blk.2.ssm"]
    assert _riders(_shard(graph, "blk.1.ffn")) == {"attn_norm.weight"}


def test_attention_beside_a_recurrent_state_stays_a_shard(tmp_path: Path) -> None:
    model = tiny(
        "falcon-h1",
        extra=[("blk.0.ssm_in.weight", (64, 96), "F32"), ("blk.0.ssm_out.weight", (64, 64), "F32")],
        ssm__conv_kernel=4,
        ssm__inner_size=64,
        ssm__state_size=16,
        ssm__group_count=1,
    )
    graph = _read(tmp_path, model)

    assert [shard.name for shard in graph.shards if shard.layer == 0] == [
        "blk.0.attn",
        "blk.0.ssm",
        "blk.0.ffn",
    ]
    assert [layer.layer for layer in graph.cache.layers] == [0, 1]
    assert graph.cache.state_conv_bytes == 3 * (64 + 2 * 16) * 4


def test_routed_experts_cost_what_one_token_selects(tmp_path: Path) -> None:
    experts = _shard(_read(tmp_path, describe("Mixtral-8x7B", "F16")), "blk.0.experts")
    selected = 2 * 3 * 4096 * 14336
    router_and_norm = 4096 * 8 + 4096

    assert experts.flops_per_token == 2 * (selected + router_and_norm)
    assert experts.active_bytes == 2 * selected + 4 * router_and_norm


def test_c20_memory_counts_all_experts_and_a_step_only_the_selected(tmp_path: Path) -> None:
    graph = _read(tmp_path, describe("Qwen3-30B-A3B", "Q4_0"))
    active_bytes = sum(shard.active_bytes for shard in graph.shards)

    assert graph.weight_bytes > 15e9
    assert active_bytes < 2e9


def test_embedding_reads_one_row_and_computes_nothing(tmp_path: Path) -> None:
    embedding = _shard(_read(tmp_path, describe("Llama-3.1-8B", "F16")), "token_embd")

    assert (embedding.active_bytes, embedding.flops_per_token, embedding.home) == (2 * 4096, 0, "host")
    assert embedding.movable_bytes == 0


def test_c14_a_tied_head_is_a_second_copy_and_lookup_tables_stay_on_the_host(tmp_path: Path) -> None:
    tables = {"token_embd.weight": "Q5_K", "per_layer_token_embd.weight": "Q5_K"}
    model = describe("gemma-4-E2B", "Q4_K", types=tables)
    graph = _read(tmp_path, model)

    assert graph.second_copy_bytes == 264 * MIB
    assert graph.host_weight_bytes == (1540 + 264) * MIB
    assert graph.device_weight_bytes == model.tensor_bytes - (264 + 1540) * MIB + 264 * MIB
    assert graph.parameters == model.parameters


def test_c15_the_per_layer_embedding_takes_no_device_memory(tmp_path: Path) -> None:
    graph = _read(tmp_path, describe("gemma-3n-E4B", "Q8_0"))
    table = _shard(graph, "per_layer_token_embd")

    assert table.tensors[0].parameters == 2_348_810_240
    assert round(table.bytes / 2**30, 2) == 2.32
    assert (table.home, table.movable_bytes) == ("host", 0)


def test_an_untied_model_has_no_second_copy(tmp_path: Path) -> None:
    assert _read(tmp_path, describe("Llama-3.1-8B")).second_copy_bytes == 0


def test_c17_mtp_blocks_are_in_the_file_and_not_loaded(tmp_path: Path) -> None:
    graph = _read(tmp_path, describe("GLM-4.5-Air+MTP", "Q8_0"))

    assert graph.parameters == 106_852_251_264
    assert round(graph.unused_bytes / 2**30, 2) == 3.58
    assert graph.shape.layers == 46
    assert "3.58 GiB of the file are for multi-token prediction and not loaded." in graph.notes


def test_c17_mtp_blocks_that_are_used_are_loaded(tmp_path: Path) -> None:
    model = describe("GLM-4.5-Air+MTP", "Q8_0")
    graph = _read(tmp_path, model, use_mtp=True)

    assert graph.parameters == model.parameters == 110_468_824_832
    assert graph.unused_bytes == 0
    assert [shard.name for shard in graph.shards[-5:]] == [
        "output",
        "blk.46.attn",
        "blk.46.experts",
        "blk.46.shared_experts",
        "blk.46.mtp",
    ]


def test_c17_a_used_mtp_block_has_a_cache_of_its_own(tmp_path: Path) -> None:
    model = describe("Qwen3.6-27B+MTP")
    without, using = _read(tmp_path, model), _read(tmp_path, model, use_mtp=True)
    (draft,) = set(using.cache.layers) - set(without.cache.layers)

    assert draft.layer == 64
    assert 2 * (draft.key_width + draft.value_width) == 4096
    assert using.cache.state_bytes_per_sequence == without.cache.state_bytes_per_sequence


def test_llama_cpp_keeps_a_cache_for_an_idle_mtp_block_of_an_attention_only_model(tmp_path: Path) -> None:
    cache = _read(tmp_path, describe("GLM-4.5-Air+MTP")).cache

    assert [layer.layer for layer in cache.layers] == list(range(47))


def test_an_mtp_block_looks_its_embedding_up(tmp_path: Path) -> None:
    draft = _shard(_read(tmp_path, describe("DeepSeek-V3+MTP"), use_mtp=True), "blk.61.mtp")
    tables = {tensor.name: tensor for tensor in draft.tensors}

    assert not tables["blk.61.nextn.embed_tokens.weight"].movable
    assert tables["blk.61.nextn.shared_head_head.weight"].movable
    assert draft.active_bytes == draft.bytes - 7168 * 2 * (129280 - 1)


def test_a_projector_has_vision_shards_and_no_cache(tmp_path: Path) -> None:
    rows = [
        ("v.patch_embd.weight", (14, 14, 3, 64), "F16"),
        ("v.position_embd.weight", (64, 256), "F32"),
        ("v.blk.0.ln1.weight", (64,), "F32"),
        ("v.blk.0.attn_q.weight", (64, 64), "F16"),
        ("v.blk.0.ffn_up.weight", (64, 128), "F16"),
        ("v.post_ln.weight", (64,), "F32"),
        ("mm.0.weight", (64, 96), "F16"),
        ("a.blk.0.attn_q.weight", (64, 64), "F16"),
        ("a.conv1d.0.weight", (3, 64, 64), "F16"),
    ]
    metadata = {
        "general.architecture": "clip",
        "general.type": "mmproj",
        "clip.vision.block_count": 1,
        "clip.vision.embedding_length": 64,
        "clip.vision.feed_forward_length": 128,
        "clip.vision.attention.head_count": 4,
    }
    graph = _read(tmp_path, Described(metadata, tuple(rows)))

    assert [shard.name for shard in graph.shards] == [
        "audio.embed",
        "vision.embed",
        "audio.0.attn",
        "vision.0.attn",
        "vision.0.ffn",
        "vision.projector",
    ]
    assert {shard.kind for shard in graph.shards} == {"vision"}
    assert graph.cache.layers == ()
    assert (graph.shape.layers, graph.shape.embedding_width) == (1, 64)
    assert [t.name for shard in graph.shards for t in shard.tensors if t.movable] == [
        "a.blk.0.attn_q.weight",
        "v.blk.0.attn_q.weight",
        "v.blk.0.ffn_up.weight",
        "mm.0.weight",
    ]


def test_tensors_outside_layers_have_a_place(tmp_path: Path) -> None:
    model = tiny(
        extra=[
            ("position_embd.weight", (64, 128), "F32"),
            ("rope_freqs.weight", (8,), "F32"),
            ("cls.output.weight", (64, 2), "F32"),
            ("fc.weight", (64, 64), "F32"),
        ]
    )
    graph = _read(tmp_path, model)

    assert [shard.name for shard in graph.shards if shard.layer is None] == [
        "token_embd",
        "other",
        "position_embd",
        "classifier",
        "output",
    ]
    assert "rope_freqs.weight" in {tensor.name for tensor in _shard(graph, "blk.0.attn").tensors}
    assert _shard(graph, "position_embd").home == "host"


def test_experts_kept_one_by_one_are_routed_too(tmp_path: Path) -> None:
    rows = [(f"blk.0.ffn_up.{expert}.weight", (64, 32), "F32") for expert in range(4)]
    graph = _read(tmp_path, tiny(extra=rows, expert_count=4, expert_used_count=1))
    experts = _shard(graph, "blk.0.experts")

    assert experts.bytes == 4 * 64 * 32 * 4
    assert experts.active_bytes == 64 * 32 * 4


def test_a_layer_of_unknown_names_is_still_counted(tmp_path: Path) -> None:
    model = tiny(layers=1)
    odd = replace(model, tensors=(*model.tensors, ("blk.0.mystery.weight", (64, 64), "F32")))
    graph = _read(tmp_path, odd)

    assert _shard(graph, "blk.0.other").movable_bytes == 64 * 64 * 4
    assert graph.parameters == odd.parameters


def test_a_layer_without_any_matrix_keeps_its_tensors(tmp_path: Path) -> None:
    rows = (("token_embd.weight", (64, 256), "F32"), ("blk.0.attn_norm.weight", (64,), "F32"))
    graph = _read(tmp_path, Described(tiny(layers=1).hyperparameters, rows))

    assert [shard.name for shard in graph.shards] == ["token_embd", "blk.0.attn", "output"]


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "gpt-oss-20b", "gemma-4-E2B"])
def test_every_active_byte_is_a_byte_of_its_shard(tmp_path: Path, name: str) -> None:
    assert all(0 < shard.active_bytes <= shard.bytes for shard in _read(tmp_path, describe(name)).shards)
