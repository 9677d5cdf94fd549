"""A budget is kept: refused where it cannot be, and changed while the engine runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.plans import SHAPES, plan_by
from xlm_plugin.errors import DoesNotFitError, EngineError
from xlm_plugin.plan.document import Plan

if TYPE_CHECKING:
    from integration.conftest import Runner
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import PlannedContext


@pytest.fixture
def pinned(runner: Runner, demo: ModelGraph, context: PlannedContext) -> Plan:
    return plan_by(demo, runner.device, context, *SHAPES["all pin"])


def test_a_plan_over_its_budget_is_refused_before_loading_with_the_missing_bytes(pinned: Plan) -> None:
    smaller = f'"budget_bytes": {pinned.ledger.total_bytes - 5}'
    text = pinned.to_json().replace(f'"budget_bytes": {pinned.budget_bytes}', smaller)
    with pytest.raises(DoesNotFitError, match="5 bytes more") as caught:
        Plan.from_json(text)
    assert caught.value.missing_bytes == 5


def test_the_device_refuses_to_take_more_than_the_budget_for_what_a_plan_forgot(
    runner: Runner, demo: ModelGraph, context: PlannedContext
) -> None:
    plan = plan_by(demo, runner.device, context, *SHAPES["all cpu"])
    ledger = plan.ledger.model_copy(update={"kv_bytes": 0, "compute_bytes": 0})
    forgetful = plan.model_copy(update={"ledger": ledger, "budget_bytes": ledger.total_bytes})
    with pytest.raises(EngineError, match=r"The device refused: .* MiB above the budget"):
        runner.start(forgetful, demo)


def test_a_device_that_the_engine_does_not_have_is_refused(
    runner: Runner, demo: ModelGraph, pinned: Plan
) -> None:
    with pytest.raises(EngineError, match="no device 'CUDA7'"):
        runner.start(pinned.model_copy(update={"device": "CUDA7"}), demo)


def test_tokens_stay_the_same_while_the_budget_shrinks_and_grows(
    runner: Runner, demo: ModelGraph, pinned: Plan
) -> None:
    with runner.start(pinned, demo) as engine:
        control = runner.backend.control(engine)
        tokens = runner.ask(engine).tokens
        full = control.stats()
        # A ring for shards that no longer stay takes two slots of the largest shard at once.
        control.set_budget(full.device_bytes - full.device_bytes // 8)
        assert runner.ask(engine).tokens == tokens
        shrunk = control.stats()
        assert shrunk.device_bytes <= shrunk.budget_bytes < full.device_bytes
        assert shrunk.demoted_shards > 0
        control.set_budget(full.budget_bytes)
        assert runner.ask(engine).tokens == tokens
        assert runner.ask(engine).tokens == tokens


def test_a_parked_engine_holds_no_weights_and_answers_after_it_wakes(
    runner: Runner, demo: ModelGraph, pinned: Plan
) -> None:
    with runner.start(pinned, demo) as engine:
        control = runner.backend.control(engine)
        tokens = runner.ask(engine).tokens
        control.park()
        parked = control.stats()
        assert (parked.state, parked.ledger_bytes["resident"]) == ("parked", 0)
        control.wake()
        assert runner.ask(engine).tokens == tokens
