"""The planner, by example."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from xlm_hooks.planner.best import Planner as BestPlanner
from xlm_hooks.planner.strategies import Dynamic, GpuOnly, Static
from xlm_plugin.errors import DoesNotFitError, PlanError
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.testing import fake_device, fake_machine, tiny_model
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.plan.document import Plan

    Planner = Callable[..., Plan]

DENSE = tiny_model(layers=8, embedding_width=1024, ffn_width=4096, vocabulary=8192, context_tokens=4096)
MOE = tiny_model(
    layers=8, embedding_width=256, ffn_width=512, experts=32, experts_used=4, context_tokens=4096
)
SIZES = {shard.name: device_bytes(shard) for model in (DENSE,) for shard in model.shards}
ATTENTION, FFN, OUTPUT = SIZES["blk.0.attn"], SIZES["blk.0.ffn"], SIZES["output"]
RING = 2 * FFN
ALL = 8 * (ATTENTION + FFN) + OUTPUT
EXPERTS = next(device_bytes(shard) for shard in MOE.shards if shard.kind == "experts")
MOE_DENSE = sum(device_bytes(s) for s in MOE.shards if s.home == "device" and s.kind != "experts")


def placed(plan: Plan, tier: int) -> dict[str, Counter[str]]:
    """Return how often each placement is used in one tier, by kind of shard."""
    counts: dict[str, Counter[str]] = {}
    for name, placement in plan.tiers[tier].placements.items():
        counts.setdefault(name.rpartition(".")[2], Counter())[placement] += 1
    return counts


def test_where_everything_fits_the_plan_steps_aside(plan: Planner) -> None:
    whole = plan(DENSE, ALL)
    assert whole.is_stock
    assert {place for tier in whole.tiers for place in tier.placements.values()} == {"pin"}
    assert whole.staging.slots == 0
    assert whole.ledger.resident_weight_bytes == ALL
    assert "steps aside" in whole.notes[0]


def test_one_byte_less_is_no_longer_stock(plan: Planner) -> None:
    assert not plan(DENSE, ALL - 1).is_stock


def test_more_of_the_model_becomes_resident_where_there_is_more_room(plan: Planner) -> None:
    some, most = (plan(DENSE, room) for room in (RING + 4 * FFN, RING + 8 * ATTENTION + OUTPUT + 4 * FFN))
    assert 0 < len(some.resident) < len(most.resident) < len(DENSE.shards) - 1


def test_prefill_streams_what_is_not_resident_and_decode_does_not_over_a_slow_link(plan: Planner) -> None:
    room = RING + 8 * ATTENTION + 2 * FFN
    prefill = plan(DENSE, room, objective="ttft")
    assert placed(prefill, -1)["ffn"]["stream"] > 0
    assert prefill.staging.slots >= 2
    slow = fake_machine(fake_device(link_bytes_per_s=0.1e9))
    assert "stream" not in plan(DENSE, room, objective="tps", machine=slow).tiers[0].placements.values()


def test_a_fast_link_streams_in_decode_too(plan: Planner) -> None:
    fast = fake_machine(fake_device(link_bytes_per_s=500e9))
    assert sum(counts["stream"] for counts in placed(plan(DENSE, RING + FFN, machine=fast), 0).values()) > 8


def test_without_room_for_two_slots_nothing_streams(plan: Planner) -> None:
    smallest = min(SIZES.values())
    bare = plan(DENSE, 2 * smallest - 1)
    assert not bare.streamed
    assert bare.staging.slots == 0


def test_c45_routed_experts_stream_only_from_32_tokens_for_each(plan: Planner) -> None:
    mixed = plan(MOE, MOE_DENSE + 3 * EXPERTS, objective="ttft")
    streams = {tier.new_tokens: "stream" in tier.placements.values() for tier in mixed.tiers}
    early = [tier for tier in mixed.tiers if tier.new_tokens < 256]
    assert not any(
        placement == "stream" and name.endswith("experts")
        for tier in early
        for name, placement in tier.placements.items()
    )
    assert max(streams) == 512


def test_decode_alone_sets_nothing_aside_for_the_staging_of_prefill(plan: Planner) -> None:
    slow = fake_machine(fake_device(link_bytes_per_s=1e9))
    assert plan(MOE, MOE_DENSE + 3 * EXPERTS, objective="tps", machine=slow).ledger.staging_bytes == 0


def test_the_objective_is_what_the_plan_is_quickest_at(plan: Planner) -> None:
    room = RING + 4 * FFN
    first, decode = (plan(DENSE, room, objective=objective) for objective in ("ttft", "tps"))
    assert decode.tiers[0].prediction.step_seconds <= first.tiers[0].prediction.step_seconds
    assert first.tiers[-1].prediction.step_seconds <= decode.tiers[-1].prediction.step_seconds


def test_c42_unified_memory_does_not_split_experts(plan: Planner) -> None:
    unified = fake_machine(fake_device(unified=True))
    half = plan(MOE, MOE_DENSE + 5 * EXPERTS, machine=unified)
    assert not any("experts" in name for name in half.resident)
    assert plan(MOE, MOE_DENSE + 8 * EXPERTS, machine=unified).is_stock


def test_gpu_only_streams_all_that_is_not_resident(plan: Planner) -> None:
    streaming = plan(MOE, 3 * EXPERTS, strategies=[GpuOnly()])
    assert {place for tier in streaming.tiers for place in tier.placements.values()} == {"pin", "stream"}
    assert {tier.strategy for tier in streaming.tiers} == {"gpu_only"}


def test_gpu_only_without_room_for_its_slots_says_how_much_is_missing(plan: Planner) -> None:
    with pytest.raises(DoesNotFitError, match="no other way was left to try than gpu_only") as caught:
        plan(MOE, 2 * EXPERTS - 5, strategies=[GpuOnly()])
    assert caught.value.missing_bytes == 5


def test_static_keeps_no_staging(plan: Planner) -> None:
    still = plan(DENSE, ALL - 1, strategies=[Static()])
    assert still.staging.slots == 0
    assert sum(counts["cpu"] for counts in placed(still, -1).values()) == 1


def test_dynamic_does_without_streaming_where_it_must(plan: Planner) -> None:
    assert plan(DENSE, 0, strategies=[Dynamic()]).staging.slots == 0


def test_no_strategy_at_all_is_refused(plan: Planner) -> None:
    with pytest.raises(PlanError, match=r"No strategy can place this model \(tried: none\)"):
        plan(DENSE, ALL - 1, strategies=[])


def test_every_tier_predicts_its_step_and_the_bytes_that_it_streams(plan: Planner) -> None:
    mixed = plan(DENSE, RING + 4 * ATTENTION)
    for tier in mixed.tiers:
        streamed = [name for name, placement in tier.placements.items() if placement == "stream"]
        assert tier.prediction.link_bytes == sum(SIZES[name] for name in streamed)
    assert 0 < mixed.tiers[0].prediction.step_seconds < mixed.tiers[-1].prediction.step_seconds


def test_host_tables_and_small_tensors_are_not_placed(plan: Planner) -> None:
    mixed = plan(DENSE, RING)
    tensors = [tensor for shard in mixed.shards for tensor in shard.tensors]
    movable = [t.name for s in DENSE.shards if s.home == "device" for t in s.tensors if t.movable]
    assert tensors == movable
    assert "token_embd.weight" not in tensors


def test_a_vision_tower_is_the_engines_to_place_and_counts_as_the_projector(plan: Planner) -> None:
    tower = replace(DENSE.shards[1], name="vision.0.attn", kind="vision", layer=None)
    seeing = plan(replace(DENSE, shards=(*DENSE.shards, tower)), RING)
    assert tower.name not in {shard.name for shard in seeing.shards}
    assert seeing.ledger.projector_bytes == tower.bytes


def test_an_emulated_device_is_named_as_one(plan: Planner) -> None:
    emulated = plan(DENSE, RING, machine=fake_machine(fake_device(name="EMU0", emulated=True)))
    assert (emulated.device, emulated.emulated) == ("EMU0", True)
    assert any("EMU0 is emulated" in note for note in emulated.notes)


def test_a_generic_architecture_is_told(plan: Planner) -> None:
    assert any("generic rule" in note for note in plan(replace(DENSE, generic=True), RING).notes)


def test_without_a_device_there_is_nothing_to_plan_for() -> None:
    profile = Profile(fake_machine(accelerator=False))
    with pytest.raises(PlanError, match="no device to plan for"):
        BestPlanner(DENSE, profile, PlannedContext(tokens=512), "e2e", [Static()])


def test_a_model_without_matrices_is_refused(plan: Planner) -> None:
    with pytest.raises(PlanError, match="'tiny' has no weights that could be placed"):
        plan(replace(DENSE, shards=DENSE.shards[:1]), MIB)
