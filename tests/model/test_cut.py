"""An FFN cut in two holds what it held."""

from __future__ import annotations

import pytest

from xlm_plugin.errors import UsageError
from xlm_plugin.model.cut import cut_ffn
from xlm_plugin.testing import tiny_model


def test_a_cut_ffn_is_two_shards_in_place_of_one() -> None:
    model = tiny_model()
    whole = next(shard for shard in model.shards if shard.name == "blk.1.ffn")
    cut = cut_ffn(model, 1)
    up_gate, down = (shard for shard in cut.shards if shard.layer == 1 and shard.kind == "ffn")
    assert (up_gate.name, down.name) == ("blk.1.ffn.up_gate", "blk.1.ffn.down")
    assert [tensor.name for tensor in down.tensors] == ["blk.1.ffn_down.weight"]
    assert up_gate.tensors + down.tensors == whole.tensors
    assert up_gate.movable_bytes + down.movable_bytes == whole.movable_bytes


def test_the_rest_of_the_model_stays_as_it_was() -> None:
    model = tiny_model()
    cut = cut_ffn(model, 1)
    assert cut.fingerprint == model.fingerprint
    assert [shard.name for shard in cut.shards if shard.kind != "ffn" or shard.layer != 1] == [
        shard.name for shard in model.shards if shard.name != "blk.1.ffn"
    ]


def test_what_has_no_dense_ffn_cannot_be_cut() -> None:
    with pytest.raises(UsageError, match="Layer 9 of 'tiny' has no dense FFN"):
        cut_ffn(tiny_model(), 9)
    with pytest.raises(UsageError, match="Layer 0 of 'tiny' has no dense FFN"):
        cut_ffn(tiny_model(experts=4), 0)
