"""The built-in strategies: where a shard that is not resident goes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from xlm_hooks.planner.patterns import EVERYTHING, MIXES, NOTHING, least_streamed_tokens
from xlm_hooks.planner.strategies import Dynamic, GpuOnly, Static, Stock, patterns_of
from xlm_plugin.machine.rates import Rates
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulate import codes, simulate_step
from xlm_plugin.plan.step_costs import CostModel, StepLoad
from xlm_plugin.plan.strategy import TierSetting
from xlm_plugin.testing import tiny_model
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph, Shard

MODEL = tiny_model()
SHARDS = tuple(shard for shard in MODEL.shards if shard.home == "device")
NAMES = frozenset(shard.name for shard in SHARDS)
RATES = Rates(
    link_bytes_per_s=10e9,
    device_bytes_per_s=1e12,
    device_flops_per_s=1e14,
    host_bytes_per_s=20e9,
    host_experts_bytes_per_s=20e9,
    host_attention_bytes_per_s=20e9,
    host_flops_per_s=1e11,
    crossing_seconds=0.0,
)


def placeable(model: ModelGraph) -> tuple[Shard, ...]:
    return tuple(shard for shard in model.shards if shard.home == "device")


def setting(
    new_tokens: int, model: ModelGraph = MODEL, rates: Rates = RATES, slot_bytes: int = GIB
) -> TierSetting:
    costs = CostModel(model, placeable(model), rates).costs(StepLoad(new_tokens))
    return TierSetting(new_tokens, frozenset({"output"}), slot_bytes, 2, costs)


DECODE = setting(1)
PREFILL = setting(512)


def test_stock_applies_only_where_everything_is_resident() -> None:
    assert Stock().place(SHARDS, DECODE) is None
    assert Stock().place(SHARDS, replace(DECODE, resident=NAMES)) == dict.fromkeys(NAMES, "pin")


def test_gpu_only_streams_the_rest() -> None:
    assert GpuOnly().place(SHARDS, DECODE) == {**dict.fromkeys(NAMES, "stream"), "output": "pin"}


def test_gpu_only_does_not_apply_where_a_shard_is_larger_than_a_slot() -> None:
    largest = max(device_bytes(shard) for shard in SHARDS if shard.name != "output")
    assert GpuOnly().place(SHARDS, replace(DECODE, slot_bytes=largest)) is not None
    assert GpuOnly().place(SHARDS, replace(DECODE, slot_bytes=largest - 1)) is None


def test_static_runs_the_rest_on_the_cpu() -> None:
    assert Static().place(SHARDS, PREFILL) == {**dict.fromkeys(NAMES, "cpu"), "output": "pin"}


def test_dynamic_is_never_slower_than_static_or_gpu_only() -> None:
    for tier in (DECODE, PREFILL):
        seconds = {
            strategy.name: simulate_step(tier.costs, codes(SHARDS, placed)).step_seconds
            for strategy in (Dynamic(), Static(), GpuOnly())
            if (placed := strategy.place(SHARDS, tier))
        }
        assert seconds["dynamic"] == min(seconds.values())


def test_dynamic_streams_what_hides_behind_the_cpus_work_and_no_more() -> None:
    placed = list(Dynamic().place(SHARDS, DECODE).values())
    assert {"cpu", "stream"} < set(placed)


def test_dynamic_runs_decode_on_the_cpu_behind_a_thin_link() -> None:
    thin = setting(1, rates=replace(RATES, link_bytes_per_s=0.1e9))
    assert Dynamic().place(SHARDS, thin) == {**dict.fromkeys(NAMES, "cpu"), "output": "pin"}


def test_dynamic_streams_all_over_a_link_much_faster_than_memory() -> None:
    for tier in (setting(1, rates=replace(RATES, link_bytes_per_s=500e9)), PREFILL):
        assert Dynamic().place(SHARDS, tier) == {**dict.fromkeys(NAMES, "stream"), "output": "pin"}


def test_dynamic_runs_what_no_slot_holds_on_the_cpu() -> None:
    assert Dynamic().place(SHARDS, replace(PREFILL, slot_bytes=0))["blk.0.ffn"] == "cpu"


@pytest.mark.parametrize(
    ("count", "used", "tokens"), [(256, 8, 1024), (128, 4, 1024), (128, 8, 512), (8, 2, 128)]
)
def test_c45_experts_stream_from_32_tokens_for_each_expert(count: int, used: int, tokens: int) -> None:
    model = tiny_model(layers=1, experts=count, experts_used=used)
    shards = placeable(model)
    experts = next(shard for shard in shards if shard.kind == "experts")
    assert least_streamed_tokens(experts) == tokens
    assert Dynamic().place(shards, setting(tokens, model))[experts.name] == "stream"
    assert Dynamic().place(shards, setting(tokens - 1, model))[experts.name] == "cpu"


def test_the_search_tries_what_the_strategies_would() -> None:
    assert patterns_of([Static()]) == (NOTHING,)
    assert patterns_of([Stock(), Dynamic(), GpuOnly()]) == (NOTHING, *MIXES, EVERYTHING)
    assert set(patterns_of([Stock()])) == {EVERYTHING, NOTHING, *MIXES}
