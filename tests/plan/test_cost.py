"""The first cost of a step, term by term."""

from __future__ import annotations

import pytest

from xlm_plugin.machine.rates import Rates
from xlm_plugin.plan.cost import (
    active_share,
    computed_tokens,
    device_seconds,
    host_seconds,
    link_seconds,
    read_bytes,
    step_seconds,
)
from xlm_plugin.testing import tiny_model

RATES = Rates(
    link_bytes_per_s=1e9,
    device_bytes_per_s=10e9,
    device_flops_per_s=100e9,
    host_bytes_per_s=2e9,
    host_attention_bytes_per_s=2e9,
    host_experts_bytes_per_s=1e9,
    host_flops_per_s=4e9,
    crossing_seconds=1e-3,
)
DENSE = {shard.name: shard for shard in tiny_model().shards}
FFN = DENSE["blk.0.ffn"]
EXPERTS = next(shard for shard in tiny_model(experts=8, experts_used=2).shards if shard.kind == "experts")


def test_a_copy_takes_the_bytes_over_the_link_whatever_the_tokens() -> None:
    assert link_seconds(FFN, RATES) == FFN.movable_bytes / 1e9


def test_one_token_is_bound_by_memory_and_many_by_arithmetic() -> None:
    assert device_seconds(FFN, 1, RATES) == FFN.movable_bytes / 10e9
    assert device_seconds(FFN, 512, RATES) == FFN.flops_per_token * 512 / 100e9


def test_the_host_pays_for_going_there_and_back() -> None:
    assert host_seconds(FFN, 1, RATES) == pytest.approx(FFN.movable_bytes / 2e9 + 2e-3)
    assert host_seconds(FFN, 512, RATES) == pytest.approx(FFN.flops_per_token * 512 / 4e9 + 2e-3)


def test_the_host_reads_scattered_experts_at_their_own_rate() -> None:
    assert host_seconds(EXPERTS, 1, RATES) == pytest.approx(EXPERTS.movable_bytes / 4 / 1e9 + 2e-3)


def test_one_token_reads_the_experts_it_selects_and_many_read_all() -> None:
    assert active_share(FFN) == 1
    assert active_share(EXPERTS) == 2 / 8
    assert read_bytes(EXPERTS, 1) == pytest.approx(EXPERTS.movable_bytes * 2 / 8)
    assert read_bytes(EXPERTS, 2) == pytest.approx(EXPERTS.movable_bytes * (1 - (6 / 8) ** 2))
    assert read_bytes(EXPERTS, 512) == pytest.approx(EXPERTS.movable_bytes)


def test_of_a_prompt_only_the_last_token_reaches_the_output_head() -> None:
    assert computed_tokens(DENSE["output"], 512) == 1
    assert computed_tokens(FFN, 512) == 512


def test_copies_hide_behind_the_device_and_the_host_does_not() -> None:
    attention, output = DENSE["blk.0.attn"], DENSE["output"]
    shards = (attention, FFN, output)
    streaming = step_seconds(
        shards, {attention.name: "pin", FFN.name: "stream", output.name: "cpu"}, 1, RATES
    )
    assert streaming == pytest.approx(link_seconds(FFN, RATES) + host_seconds(output, 1, RATES))
    resident = step_seconds(shards, dict.fromkeys([shard.name for shard in shards], "pin"), 1, RATES)
    assert resident == pytest.approx(sum(device_seconds(shard, 1, RATES) for shard in shards))
