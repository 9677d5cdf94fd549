"""A plan explained: where the time goes, why shards lie where they lie, what more memory would buy."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from xlm_hooks import plugin as built_in
from xlm_plugin.errors import PlanError
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.explain import explain, milliseconds, next_step_bytes
from xlm_plugin.plan.make import make_plan
from xlm_plugin.plan.memory import estimate
from xlm_plugin.plan.simulated import SimulatedPlan
from xlm_plugin.testing import fake_machine, plugin_manager, tiny_model
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from xlm_plugin.plan.document import Plan
    from xlm_plugin.plan.explain import Explanation

MODEL = tiny_model(layers=8, embedding_width=1024, ffn_width=4096, vocabulary=8192, context_tokens=4096)
PROFILE = Profile(fake_machine())
CONTEXT = PlannedContext(tokens=512)
MEMORY = estimate(MODEL, CONTEXT, device=PROFILE.machine.device)


def plan_of(budget_bytes: int) -> Plan:
    with plugin_manager(built_in) as manager:
        return make_plan(manager, MODEL, PROFILE, CONTEXT, budget_bytes)


def explained(weights_share: float) -> Explanation:
    plan = plan_of(MEMORY.fixed_bytes + int(MEMORY.movable_bytes * weights_share))
    return explain(plan, MODEL, PROFILE, plan_of)


HALF = explained(0.5)


def test_the_time_of_a_step_is_accounted_for_without_rest() -> None:
    for phase in HALF.phases:
        step = phase.step
        spent = step.host_seconds + step.device_seconds + step.crossing_seconds + step.waiting_seconds
        assert spent == pytest.approx(step.step_seconds)
        assert milliseconds(step.step_seconds) in phase.sentence
        assert f"busy {step.utilisation[step.bottleneck]:.0%}" in phase.sentence


def test_a_step_takes_what_the_plan_predicts() -> None:
    plan = plan_of(MEMORY.fixed_bytes + MEMORY.movable_bytes // 2)
    simulated = SimulatedPlan(plan, MODEL, PROFILE)
    for tier in (plan.tiers[0], plan.tiers[-1]):
        assert tier.prediction
        assert simulated.step(tier.new_tokens).step_seconds == tier.prediction.step_seconds
        assert simulated.timeline(tier.new_tokens)[-1].end == tier.prediction.step_seconds


def test_every_shard_is_in_one_group() -> None:
    names = [name for group in HALF.groups for name in group.names]
    assert sorted(names) == sorted(shard.name for shard in MODEL.shards if shard.home == "device")


def test_residents_save_time_and_so_would_what_is_left_out() -> None:
    residents = [group for group in HALF.groups if group.decode == "pin"]
    others = [group for group in HALF.groups if group.decode != "pin"]
    assert residents
    assert others
    assert all(group.saved_seconds > 0 for group in residents)
    assert any("in VRAM would save" in reason for group in others for reason in group.reasons)
    assert all(
        f"In {phase}" in " ".join(group.reasons) for group in others for phase in ("decode", "prefill")
    )


def test_a_group_says_what_lies_where() -> None:
    titles = [group.title for group in HALF.groups]
    assert any(title.startswith("Attention 8 of 8, ") and title.endswith(": resident") for title in titles)
    assert any("streams in prefill" in title for title in titles)


def test_more_memory_buys_shards_and_speed() -> None:
    bought = HALF.next_bytes
    assert bought
    assert sum(count for _, count in bought.resident_more) > 0
    assert bought.tokens_per_s[1] > bought.tokens_per_s[0]
    assert "more would hold" in HALF.next_sentence


def test_where_everything_is_resident_more_memory_buys_nothing() -> None:
    assert explained(1.0).next_sentence == "Everything is resident: more memory would buy nothing."


@pytest.mark.parametrize(
    ("budget_bytes", "more_bytes"), [(6 * GIB, GIB), (64 * GIB, GIB), (61 * MIB, 8 * MIB), (1, 1)]
)
def test_the_next_gib_of_a_small_budget_is_a_part_of_it(budget_bytes: int, more_bytes: int) -> None:
    assert next_step_bytes(budget_bytes) == more_bytes


def test_without_a_device_there_is_nothing_to_explain() -> None:
    plan = plan_of(MEMORY.device_bytes)
    with pytest.raises(PlanError, match="no device"):
        explain(plan, MODEL, replace(PROFILE, machine=fake_machine(accelerator=False)), plan_of)


def test_a_plan_may_cut_shards_finer_than_the_model() -> None:
    plan = plan_of(MEMORY.fixed_bytes)
    whole = next(shard for shard in plan.shards if shard.name == "blk.0.ffn")
    parts = [
        whole.model_copy(update={"name": f"blk.0.ffn.{name}", "tensors": tensors})
        for name, tensors in (("up_gate", whole.tensors[:2]), ("down", whole.tensors[2:]))
    ]
    shards = [part for shard in plan.shards for part in (parts if shard is whole else [shard])]
    placements = {shard.name: "cpu" for shard in shards}
    tiers = tuple(tier.model_copy(update={"placements": placements}) for tier in plan.tiers)
    cut = SimulatedPlan(plan.model_copy(update={"shards": tuple(shards), "tiers": tiers}), MODEL, PROFILE)
    uncut_tiers = tuple(
        tier.model_copy(update={"placements": {shard.name: "cpu" for shard in plan.shards}})
        for tier in plan.tiers
    )
    uncut = SimulatedPlan(plan.model_copy(update={"tiers": uncut_tiers}), MODEL, PROFILE)
    assert [shard.movable_bytes for shard in cut.shards if "blk.0.ffn" in shard.name] == [
        2 * 1024 * 4096 * 2,
        1024 * 4096 * 2,
    ]
    assert cut.step(1).step_seconds == pytest.approx(uncut.step(1).step_seconds, rel=1e-6)


def test_tensors_that_the_model_does_not_have_are_named() -> None:
    plan = plan_of(MEMORY.fixed_bytes)
    strange = plan.shards[0].model_copy(update={"tensors": ("blk.99.weight",)})
    made = plan.model_copy(update={"shards": (strange, *plan.shards[1:])})
    with pytest.raises(PlanError, match=r"places 'blk\.99\.weight'"):
        SimulatedPlan(made, MODEL, PROFILE).step(1)
