"""Under any plan the engine says what it says without one, bit for bit, within its budget."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from integration.plans import DECODE, PREFILL, SHAPES, plan_by

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.conftest import Runner
    from xlm_plugin.backend import Completion, DeviceStats
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import PlannedContext


@pytest.fixture(scope="module")
def stock(runner: Runner, context: PlannedContext) -> Callable[[ModelGraph], Completion]:
    """Return what the stock engine says with a model; each model is asked once."""

    @cache
    def ask(model: ModelGraph) -> Completion:
        return runner.stock(plan_by(model, runner.device, context, *SHAPES["all pin"]), model)

    return ask


@pytest.fixture(scope="module", params=SHAPES)
def shape(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(
    runner: Runner, model: ModelGraph, context: PlannedContext, shape: str
) -> tuple[Completion, DeviceStats]:
    return runner.under(plan_by(model, runner.device, context, *SHAPES[shape]), model)


def test_tokens_and_logprobs_are_those_of_the_stock_engine(
    run: tuple[Completion, DeviceStats], stock: Callable[[ModelGraph], Completion], model: ModelGraph
) -> None:
    completion, _ = run
    assert completion.tokens == stock(model).tokens
    assert completion.logprobs == stock(model).logprobs


def test_the_ledger_counts_what_the_device_holds_and_stays_within_the_budget(
    run: tuple[Completion, DeviceStats],
) -> None:
    _, stats = run
    assert sum(stats.ledger_bytes.values()) == stats.device_bytes <= stats.budget_bytes
    assert stats.demoted_shards == 0


def test_decode_and_prefill_are_counted_as_steps_of_their_own_tiers(
    run: tuple[Completion, DeviceStats], shape: str
) -> None:
    completion, stats = run
    # A plan that leaves the device no weight leaves it no step to count either.
    reached = shape != "all cpu"
    assert stats.steps[DECODE] == (len(completion.tokens) - 1) * reached
    assert (stats.steps[PREFILL] > 0) == reached
