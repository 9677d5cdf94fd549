"""What a shard takes of each resource, term by term."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from xlm_plugin.machine.rates import Rates
from xlm_plugin.model.cache import CacheRule, LayerCache
from xlm_plugin.plan.step_costs import CostModel, StepLoad, active_share
from xlm_plugin.testing import tiny_model

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph

RATES = Rates(
    link_bytes_per_s=1e9,
    device_bytes_per_s=10e9,
    device_flops_per_s=100e9,
    host_bytes_per_s=2e9,
    host_experts_bytes_per_s=1e9,
    host_attention_bytes_per_s=0.5e9,
    host_flops_per_s=4e9,
    crossing_seconds=1e-3,
)
DENSE = tiny_model()
MOE = tiny_model(experts=8, experts_used=2)


def cost_model(model: ModelGraph = DENSE, rates: Rates = RATES) -> CostModel:
    return CostModel(model, tuple(shard for shard in model.shards if shard.home == "device"), rates)


def at(model: ModelGraph, name: str) -> int:
    return [shard.name for shard in model.shards if shard.home == "device"].index(name)


FFN = at(DENSE, "blk.0.ffn")
FFN_SHARD = next(shard for shard in DENSE.shards if shard.name == "blk.0.ffn")
EXPERTS = at(MOE, "blk.0.experts")
EXPERTS_SHARD = next(shard for shard in MOE.shards if shard.kind == "experts")


def test_a_copy_takes_the_bytes_over_the_link_whatever_the_tokens() -> None:
    for tokens in (1, 512):
        assert cost_model().costs(StepLoad(tokens)).copy[FFN] == FFN_SHARD.movable_bytes / 1e9


def test_one_token_is_bound_by_memory_and_many_by_arithmetic() -> None:
    one, many = (cost_model().costs(StepLoad(tokens)) for tokens in (1, 512))
    assert one.device[FFN] == FFN_SHARD.movable_bytes / 10e9
    assert many.device[FFN] == FFN_SHARD.flops_per_token * 512 / 100e9
    assert one.host[FFN] == FFN_SHARD.movable_bytes / 2e9
    assert many.host[FFN] == FFN_SHARD.flops_per_token * 512 / 4e9


def test_the_host_reads_scattered_experts_at_their_own_rate() -> None:
    costs = cost_model(MOE).costs(StepLoad(1))
    assert costs.host[EXPERTS] == pytest.approx(EXPERTS_SHARD.movable_bytes / 4 / 1e9)


@pytest.mark.parametrize(("tokens", "share"), [(1, 2 / 8), (2, 1 - (6 / 8) ** 2), (512, 1.0)])
def test_one_token_reads_the_experts_it_selects_and_many_read_all(tokens: int, share: float) -> None:
    endless = Rates(1, 1, np.inf, 1, 1, 1, np.inf, 0)
    costs = cost_model(MOE, endless).costs(StepLoad(tokens))
    assert costs.device[EXPERTS] == pytest.approx(EXPERTS_SHARD.movable_bytes * share)


def test_dense_shards_are_read_whole() -> None:
    assert active_share(FFN_SHARD) == 1
    assert active_share(EXPERTS_SHARD) == 2 / 8


def test_of_a_prompt_only_the_last_token_reaches_the_output_head() -> None:
    costs = cost_model().costs(StepLoad(512))
    assert costs.device[-1] == cost_model().costs(StepLoad(1)).device[-1]


def test_attention_reads_the_cache_of_all_sequences_and_only_in_its_layers() -> None:
    one = cost_model().costs(StepLoad(1, cached_tokens=4095))
    two = cost_model().costs(StepLoad(2, cached_tokens=4095, sequences=2))
    cell_bytes = 2 * 2 * DENSE.cache.layers[0].key_width
    assert one.host_cache[0] == pytest.approx(4096 * cell_bytes / 0.5e9)
    assert one.device_cache[0] == pytest.approx(4096 * cell_bytes / 10e9)
    assert two.host_cache[0] == pytest.approx(2 * one.host_cache[0])
    assert one.device_cache[FFN] == one.host_cache[FFN] == 0


def test_a_quantised_cache_is_read_sooner() -> None:
    f16, q8 = (cost_model().costs(StepLoad(1, 4095, 1, t, t)) for t in ("f16", "q8_0"))
    assert q8.device_cache[0] == pytest.approx(f16.device_cache[0] * 34 / 64)


def test_a_sliding_window_ends_what_is_read() -> None:
    from dataclasses import replace

    windowed = replace(DENSE, cache=CacheRule((LayerCache(0, 32, 32, window_tokens=128),)))
    short, long = (cost_model(windowed).costs(StepLoad(1, cached)) for cached in (512, 65536))
    assert short.device_cache[0] == long.device_cache[0] > 0


def test_launching_a_layer_is_paid_once_by_its_shards_together() -> None:
    from dataclasses import replace

    without, with_ = (
        cost_model(rates=rates).costs(StepLoad(1)).device
        for rates in (RATES, replace(RATES, layer_seconds=1.0))
    )
    assert (with_ - without).tolist() == pytest.approx([0.5, 0.5, 0.5, 0.5, 0.0])
