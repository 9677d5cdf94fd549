from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.folder import LLAMA, decoder, write_folder
from xlm_plugin.model import read_model
from xlm_vllm.ranks import PLACED_KINDS, Share, rank_graph

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.graph import ModelGraph


@pytest.fixture
def model(tmp_path: Path) -> ModelGraph:
    write_folder(tmp_path, LLAMA, decoder())
    return read_model(tmp_path)


def sizes(model: ModelGraph) -> dict[str, int]:
    return {shard.name: shard.movable_bytes for shard in model.shards}


def test_only_sublayers_of_decoder_layers_move(model: ModelGraph) -> None:
    moving = {shard.kind for shard in rank_graph(model, Share()).shards if shard.movable_bytes}

    assert moving <= set(PLACED_KINDS)


def test_embeddings_lie_on_the_device_in_vllm(model: ModelGraph) -> None:
    whole = rank_graph(model, Share())

    assert whole.host_weight_bytes == 0
    assert whole.device_weight_bytes == model.weight_bytes


def test_a_tied_head_is_the_embedding_itself(tmp_path: Path) -> None:
    write_folder(tmp_path, {**LLAMA, "tie_word_embeddings": True}, decoder(tied=True))
    model = read_model(tmp_path)

    assert rank_graph(model, Share()).weight_bytes == model.weight_bytes - model.second_copy_bytes


def test_two_ranks_have_half_of_every_matrix(model: ModelGraph) -> None:
    whole, half = sizes(rank_graph(model, Share())), sizes(rank_graph(model, Share(ranks=2, kv_heads=2)))

    assert half == {name: size // 2 for name, size in whole.items()}


def test_ranks_beyond_the_heads_have_the_same_keys_and_values(model: ModelGraph) -> None:
    four = sizes(rank_graph(model, Share(ranks=4, kv_heads=2)))

    # Query and output projections by four, keys and values by two.
    assert four["blk.0.attn"] == 2 * (64 * 64 * 2 // 4) + 2 * (32 * 64 * 2 // 2)


def test_a_pipeline_stage_has_its_layers_alone(model: ModelGraph) -> None:
    second = rank_graph(model, Share(layers=range(1, 2)))

    assert {shard.layer for shard in second.shards} == {1, None}
    assert {layer.layer for layer in second.cache.layers} == {1}


def test_numbers_take_what_vllm_computes_in(model: ModelGraph) -> None:
    whole, wide = sizes(rank_graph(model, Share())), sizes(rank_graph(model, Share(element_bytes=4)))

    assert wide == {name: size * 2 for name, size in whole.items()}
