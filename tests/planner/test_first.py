"""The first planner, by example."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from xlm_hooks.planner.first import first_plan
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


def test_decode_runs_the_rest_on_the_cpu_and_prefill_streams_it(plan: Planner) -> None:
    mixed = plan(DENSE, RING + 8 * ATTENTION + OUTPUT + 2 * FFN)
    assert placed(mixed, 0) == {"attn": {"pin": 8}, "ffn": {"pin": 2, "cpu": 6}, "output": {"pin": 1}}
    assert placed(mixed, -1) == {"attn": {"pin": 8}, "ffn": {"pin": 2, "stream": 6}, "output": {"pin": 1}}
    assert (mixed.staging.slots, mixed.staging.slot_bytes) == (2, FFN)


def test_attention_becomes_resident_before_output_and_ffn(plan: Planner) -> None:
    small = plan(DENSE, RING + 8 * ATTENTION)
    assert small.resident == {f"blk.{layer}.attn" for layer in range(8)}


def test_a_third_slot_takes_only_what_is_left_over(plan: Planner) -> None:
    narrow = tiny_model(layers=8, embedding_width=1024, ffn_width=2048, vocabulary=8192)
    mixed = replace(
        DENSE,
        shards=tuple(
            n if n.layer and n.layer > 2 else d for d, n in zip(DENSE.shards, narrow.shards, strict=True)
        ),
    )
    wide_bytes = 8 * ATTENTION + OUTPUT + 3 * FFN
    assert plan(mixed, RING + wide_bytes - 1).staging.slots == 2
    assert plan(mixed, RING + wide_bytes).staging.model_dump() == {"slots": 3, "slot_bytes": FFN // 2}


def test_without_room_for_staging_all_runs_on_the_cpu_and_a_note_says_what_is_missing(plan: Planner) -> None:
    bare = plan(DENSE, RING - MIB)
    assert {place for tier in bare.tiers for place in tier.placements.values()} == {"cpu"}
    assert bare.staging.slots == 0
    assert "With 1.00 MiB more" in bare.notes[0]


def test_routed_experts_are_resident_last_and_run_on_the_cpu_in_decode(plan: Planner) -> None:
    mixed = plan(MOE, MOE_DENSE + 3 * EXPERTS)
    assert placed(mixed, 0) == {"attn": {"pin": 8}, "experts": {"pin": 1, "cpu": 7}, "output": {"pin": 1}}


def test_c45_routed_experts_stream_only_from_32_tokens_for_each(plan: Planner) -> None:
    mixed = plan(MOE, MOE_DENSE + 3 * EXPERTS)
    assert [(tier.new_tokens, tier.placements["blk.7.experts"]) for tier in mixed.tiers] == [
        (1, "cpu"),
        (16, "cpu"),
        (255, "cpu"),
        (512, "stream"),
    ]


def test_decode_alone_sets_nothing_aside_for_the_staging_of_prefill(plan: Planner) -> None:
    room = MOE_DENSE + 3 * EXPERTS
    assert plan(MOE, room, objective="tps").ledger.staging_bytes == 0
    assert len(plan(MOE, room, objective="tps").resident) == len(plan(MOE, room).resident) + 2


def test_c42_unified_memory_does_not_split_experts(plan: Planner) -> None:
    unified = fake_machine(fake_device(unified=True))
    half = plan(MOE, MOE_DENSE + 5 * EXPERTS, machine=unified)
    assert not any("experts" in name for name in half.resident)
    assert plan(MOE, MOE_DENSE + 8 * EXPERTS, machine=unified).is_stock


def test_a_fast_link_streams_in_decode_too(plan: Planner) -> None:
    fast = fake_machine(fake_device(link_bytes_per_s=500e9))
    assert placed(plan(DENSE, RING + 8 * ATTENTION, machine=fast), 0)["ffn"] == {"stream": 8}


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
    assert placed(still, -1)["ffn"] == {"pin": 7, "cpu": 1}


def test_dynamic_does_without_streaming_where_it_must(plan: Planner) -> None:
    assert plan(DENSE, 0, strategies=[Dynamic()]).staging.slots == 0


def test_no_strategy_at_all_is_refused(plan: Planner) -> None:
    with pytest.raises(PlanError, match=r"No strategy can place this model \(tried: none\)"):
        plan(DENSE, ALL - 1, strategies=[])


def test_every_tier_has_a_prediction(plan: Planner) -> None:
    mixed = plan(DENSE, RING + 8 * ATTENTION)
    decode, prefill = mixed.tiers[0].prediction, mixed.tiers[-1].prediction
    assert decode.link_bytes == 0
    assert prefill.link_bytes == 8 * FFN
    assert 0 < decode.step_seconds < prefill.step_seconds


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
        first_plan(DENSE, profile, PlannedContext(tokens=512), 2**33, "e2e", [Static()])


def test_a_model_without_matrices_is_refused(plan: Planner) -> None:
    with pytest.raises(PlanError, match="'tiny' has no weights that could be placed"):
        plan(replace(DENSE, shards=DENSE.shards[:1]), MIB)
