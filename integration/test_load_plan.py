"""Another plan takes the place of a running engine's: tokens stay the same, and the ledger stays true."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from integration.plans import SHAPES, plan_by
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from integration.conftest import Runner
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan, PlannedContext


@pytest.fixture
def plans(runner: Runner, model: ModelGraph, context: PlannedContext) -> dict[str, Plan]:
    """Return plans of all shapes, each with the budget that the largest takes and room to change."""
    made = {name: plan_by(model, runner.device, context, *shape) for name, shape in SHAPES.items()}
    budget_bytes = 2 * max(plan.budget_bytes for plan in made.values())
    return {name: plan.model_copy(update={"budget_bytes": budget_bytes}) for name, plan in made.items()}


def test_one_plan_after_another_says_what_the_first_said(
    runner: Runner, model: ModelGraph, plans: dict[str, Plan]
) -> None:
    with runner.start(plans["all pin"], model) as engine:
        control = runner.backend.control(engine)
        said = runner.ask(engine).logprobs
        for name in ("all stream", "all cpu", "another plan for prefill", "layers in turn", "all pin"):
            control.load_plan(plans[name])
            assert runner.ask(engine).logprobs == said, name
            stats = control.stats()
            assert sum(stats.ledger_bytes.values()) == stats.device_bytes <= stats.budget_bytes


def test_the_plan_in_force_is_the_new_one(runner: Runner, demo: ModelGraph, context: PlannedContext) -> None:
    pinned, streamed = (
        plan_by(demo, runner.device, context, *SHAPES[name]) for name in ("all pin", "all stream")
    )
    with runner.start(pinned, demo) as engine:
        control = runner.backend.control(engine)
        runner.ask(engine)
        control.load_plan(streamed)
        runner.ask(engine)
        stats = control.stats()
    assert stats.budget_bytes == streamed.budget_bytes < pinned.budget_bytes
    assert (stats.resident_shards, stats.device_bytes <= streamed.budget_bytes) == (0, True)
    assert stats.link_bytes > sum(shard.bytes for shard in streamed.shards)


def test_plans_change_in_the_middle_of_an_answer(
    runner: Runner, model: ModelGraph, plans: dict[str, Plan]
) -> None:
    long = replace(runner, new_tokens=200)
    with long.start(plans["all pin"], model) as engine, ThreadPoolExecutor() as pool:
        control = long.backend.control(engine)
        said = long.ask(engine).tokens
        answer = pool.submit(long.ask, engine)
        loads = 0
        while not answer.done():
            control.load_plan(plans[("mixed", "all stream", "layers in turn", "all pin")[loads % 4]])
            loads += 1
        assert answer.result().tokens == said
    assert loads > 4


def test_a_plan_that_the_engine_was_not_started_for_is_refused(
    runner: Runner, demo: ModelGraph, moe: ModelGraph, context: PlannedContext
) -> None:
    pinned = plan_by(demo, runner.device, context, *SHAPES["all pin"])
    first, *others = pinned.shards
    fewer = first.model_copy(update={"tensors": first.tensors[1:]})
    unknown = first.model_copy(update={"tensors": (*first.tensors, "blk.0.nothing.weight")})
    with runner.start(pinned, demo) as engine:
        control = runner.backend.control(engine)
        said = runner.ask(engine).tokens
        for plan, reason in (
            (plan_by(moe, runner.device, context, *SHAPES["all pin"]), "for another model, 'tiny"),
            (pinned.model_copy(update={"shards": (fewer, *others)}), "leaves out tensor"),
            (
                pinned.model_copy(update={"shards": (unknown, *others)}),
                "unknown tensor 'blk.0.nothing.weight'",
            ),
            (pinned.model_copy(update={"budget_bytes": 1000}), "too small; the least that works"),
            (pinned.model_copy(update={"host_kv_layers": (0,)}), "other KV caches in host memory"),
        ):
            with pytest.raises(EngineError, match=reason):
                control.load_plan(plan)
        assert runner.ask(engine).tokens == said
