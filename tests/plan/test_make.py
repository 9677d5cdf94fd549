"""From a model, a machine and a budget to a plan, whoever plans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from xlm_hooks import plugin as built_in
from xlm_plugin.errors import DoesNotFitError, PlanError, PluginError, UsageError
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.make import make_plan
from xlm_plugin.testing import fake_machine, plugin_manager, tiny_model, tiny_plan
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from xlm_plugin.plan.document import Plan

MODEL = tiny_model()
PROFILE = Profile(fake_machine())
CONTEXT = PlannedContext(tokens=256)


class Planner:
    """A third party's planner that always answers with one plan, and remembers what it was told."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan = plan
        self.asked: dict[str, Any] = {}
        self.ready: list[Plan] = []

    @hookimpl
    def xlm_plan(self, objective: str, strategies: Any) -> Plan | None:
        self.asked = {"objective": objective, "strategies": [strategy.name for strategy in strategies]}
        return self.plan

    @hookimpl
    def xlm_plan_ready(self, plan: Plan) -> None:
        self.ready.append(plan)


def test_the_built_in_planner_answers_and_observers_hear_of_it() -> None:
    observer = Planner(None)
    with plugin_manager(built_in, observer) as manager:
        plan = make_plan(manager, MODEL, PROFILE, CONTEXT, GIB)
    assert plan.is_stock
    assert observer.ready == [plan]


def test_another_planner_goes_first() -> None:
    planner = Planner(tiny_plan(MODEL))
    with plugin_manager(built_in, planner) as manager:
        assert make_plan(manager, MODEL, PROFILE, CONTEXT, GIB, "tps") is planner.plan
    assert planner.asked == {"objective": "tps", "strategies": ["dynamic", "static", "gpu_only"]}


def test_a_named_strategy_is_the_only_one_offered() -> None:
    planner = Planner(tiny_plan(MODEL))
    with plugin_manager(built_in, planner) as manager:
        make_plan(manager, MODEL, PROFILE, CONTEXT, GIB, strategy="static")
    assert planner.asked["strategies"] == ["static"]


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with plugin_manager(built_in) as manager, pytest.raises(UsageError) as caught:
        make_plan(manager, MODEL, PROFILE, CONTEXT, GIB, strategy="magic")
    assert str(caught.value) == "There is no strategy 'magic'. Known are: dynamic, gpu_only, static."


def test_without_a_planner_the_tool_says_so() -> None:
    with plugin_manager() as manager, pytest.raises(PluginError, match="No plugin makes plans"):
        make_plan(manager, MODEL, PROFILE, CONTEXT, GIB)


def test_a_planners_plan_for_another_model_is_refused() -> None:
    planner = Planner(tiny_plan(tiny_model(layers=3)))
    with plugin_manager(planner) as manager, pytest.raises(PlanError, match="for another model"):
        make_plan(manager, MODEL, PROFILE, CONTEXT, GIB)
    assert not planner.ready


def test_a_planners_plan_over_the_budget_is_refused() -> None:
    plan = tiny_plan(MODEL)
    with plugin_manager(Planner(plan)) as manager, pytest.raises(DoesNotFitError) as caught:
        make_plan(manager, MODEL, PROFILE, CONTEXT, plan.ledger.total_bytes - 1)
    assert caught.value.missing_bytes == 1
