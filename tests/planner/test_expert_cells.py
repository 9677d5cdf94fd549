"""Routed experts that stream only what a step selects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_hooks.planner.expert_cells import expert_cells
from xlm_hooks.planner.patterns import whole_from_tokens
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulated import SimulatedPlan
from xlm_plugin.testing import fake_device, fake_machine, tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.plan.document import Plan

    Planner = Callable[..., Plan]

MOE = tiny_model(
    layers=8, embedding_width=512, ffn_width=1024, experts=32, experts_used=4, context_tokens=4096
)
PLACED = tuple(shard for shard in MOE.shards if shard.home == "device")
EXPERTS = next(device_bytes(shard) for shard in PLACED if shard.kind == "experts")
DENSE = sum(device_bytes(shard) for shard in PLACED if shard.kind != "experts")
FAST = fake_machine(fake_device(link_bytes_per_s=40e9))
SLOW = fake_machine(fake_device(link_bytes_per_s=1e9))
ROOM = DENSE + 4 * EXPERTS


def test_cells_hold_an_expert_each_and_a_layers_experts_are_enough() -> None:
    cells = expert_cells(PLACED)
    assert cells
    assert cells.least == 32
    assert cells.cell_bytes == 3 * 512 * 1024 * 2
    assert cells.least_bytes == 33 * cells.cell_bytes + cells.whole_from_tokens * 32 * 4


def test_dense_models_have_no_cells() -> None:
    assert expert_cells([shard for shard in PLACED if shard.kind != "experts"]) is None
    assert whole_from_tokens(tiny_model().shards) == 0


def test_c45_below_32_tokens_an_expert_a_fast_link_copies_what_a_step_selects(plan: Planner) -> None:
    made = plan(MOE, ROOM, machine=FAST, objective="tps")
    assert made.expert_cache
    assert made.expert_cache.experts >= 32
    assert made.expert_cache.whole_from_tokens == 256
    decode = made.tiers[0]
    streams = [shard for shard in made.shards if decode.placements[shard.name] == "stream"]
    assert any(shard.experts == 32 for shard in streams)
    assert all(made.selects_experts(shard, decode) for shard in streams if shard.experts)


def test_over_a_slow_link_the_cpu_computes_experts(plan: Planner) -> None:
    assert plan(MOE, ROOM, machine=SLOW, objective="tps").expert_cache is None


def test_unified_memory_has_nothing_to_copy(plan: Planner) -> None:
    unified = fake_machine(fake_device(link_bytes_per_s=40e9, unified=True))
    assert plan(MOE, ROOM, machine=unified).expert_cache is None


def test_what_the_device_takes_beside_the_cells_stays_within_the_budget(plan: Planner) -> None:
    made = plan(MOE, ROOM, machine=FAST, objective="tps")
    cells = expert_cells(PLACED)
    assert cells
    assert made.ledger.total_bytes + cells.spare_bytes <= made.budget_bytes


def test_steps_that_select_and_steps_that_stream_whole_are_tiers_apart(plan: Planner) -> None:
    made = plan(MOE, ROOM, machine=FAST)
    assert made.expert_cache
    assert made.expert_cache.whole_from_tokens - 1 in [tier.new_tokens for tier in made.tiers]


def test_a_step_copies_as_many_bytes_as_it_is_expected_to_miss(plan: Planner) -> None:
    made = plan(MOE, ROOM, machine=FAST, objective="tps")
    simulated = SimulatedPlan(made, MOE, Profile(FAST))
    streamed = [s.name for s in made.shards if s.experts and made.tiers[0].placements[s.name] == "stream"]
    dense = sum(
        shard.movable_bytes
        for shard in PLACED
        if shard.kind != "experts" and made.tiers[0].placements[shard.name] == "stream"
    )
    missed = 1 - 32 / (32 * len(streamed))
    expected = dense + len(streamed) * EXPERTS * 4 / 32 * missed
    assert simulated.step(1).link_bytes == pytest.approx(expected, rel=1e-6)
    assert made.tiers[0].prediction
    assert made.tiers[0].prediction.step_seconds == simulated.step(1).step_seconds
