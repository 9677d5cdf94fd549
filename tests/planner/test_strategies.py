"""The built-in strategies: where a shard that is not resident goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xlm_hooks.planner.strategies import Dynamic, GpuOnly, Static, Stock, least_streamed_tokens
from xlm_plugin.machine.rates import Rates
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.strategy import TierSetting
from xlm_plugin.testing import tiny_model
from xlm_plugin.units import GIB

SHARDS = tuple(shard for shard in tiny_model().shards if shard.home == "device")
NAMES = frozenset(shard.name for shard in SHARDS)
RATES = Rates(
    link_bytes_per_s=10e9,
    device_bytes_per_s=1e12,
    device_flops_per_s=1e14,
    host_bytes_per_s=20e9,
    host_attention_bytes_per_s=20e9,
    host_experts_bytes_per_s=20e9,
    host_flops_per_s=1e11,
    crossing_seconds=0.0,
)
DECODE = TierSetting(new_tokens=1, resident=frozenset({"output"}), slot_bytes=GIB, rates=RATES)
PREFILL = replace(DECODE, new_tokens=512)


def experts(count: int, used: int) -> tuple[TierSetting, str]:
    """Return a prefill of the fewest tokens in which experts stream, and the shard's name."""
    model = tiny_model(layers=1, experts=count, experts_used=used)
    shard = next(shard for shard in model.shards if shard.kind == "experts")
    return replace(DECODE, new_tokens=least_streamed_tokens(shard)), shard.name


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


def test_dynamic_runs_decode_on_the_cpu_where_memory_is_faster_than_the_link() -> None:
    assert Dynamic().place(SHARDS, DECODE) == {**dict.fromkeys(NAMES, "cpu"), "output": "pin"}


def test_dynamic_runs_decode_on_the_cpu_where_memory_is_as_fast_as_the_link() -> None:
    even = replace(DECODE, rates=replace(RATES, link_bytes_per_s=RATES.host_bytes_per_s))
    assert Dynamic().place(SHARDS, even)["blk.0.ffn"] == "cpu"


def test_dynamic_streams_decode_over_a_link_faster_than_memory() -> None:
    fast = replace(DECODE, rates=replace(RATES, link_bytes_per_s=50e9))
    assert Dynamic().place(SHARDS, fast)["blk.0.ffn"] == "stream"


def test_dynamic_streams_dense_shards_in_prefill() -> None:
    assert Dynamic().place(SHARDS, PREFILL) == {**dict.fromkeys(NAMES, "stream"), "output": "pin"}


def test_dynamic_runs_what_no_slot_holds_on_the_cpu() -> None:
    assert Dynamic().place(SHARDS, replace(PREFILL, slot_bytes=0))["blk.0.ffn"] == "cpu"


@pytest.mark.parametrize(
    ("count", "used", "tokens"), [(256, 8, 1024), (128, 4, 1024), (128, 8, 512), (8, 2, 128)]
)
def test_c45_experts_stream_from_32_tokens_for_each_expert(count: int, used: int, tokens: int) -> None:
    enough, name = experts(count, used)
    shards = tiny_model(layers=1, experts=count, experts_used=used).shards
    assert enough.new_tokens == tokens
    assert Dynamic().place(shards, enough)[name] == "stream"
    assert Dynamic().place(shards, replace(enough, new_tokens=tokens - 1))[name] == "cpu"
