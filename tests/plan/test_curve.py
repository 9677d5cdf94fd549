"""Speed against VRAM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_hooks import plugin as built_in
from xlm_plugin.errors import PlanError
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.curve import BudgetCurve, CurvePoint, budget_curve
from xlm_plugin.plan.document import Plan, PlannedContext
from xlm_plugin.plan.make import make_plan
from xlm_plugin.testing import fake_machine, plugin_manager, tiny_model, tiny_plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.plugins import PluginManager

MODEL = tiny_model(layers=4, embedding_width=512, ffn_width=2048, vocabulary=4096)
PROFILE = Profile(fake_machine())
CONTEXT = PlannedContext(tokens=512)


def curve_of(strategy: str | None = None) -> BudgetCurve:
    with plugin_manager(built_in) as manager:
        return budget_curve(planner(manager, strategy), MODEL, PROFILE, CONTEXT)


def planner(manager: PluginManager, strategy: str | None = None) -> Callable[[int], Plan]:
    return lambda budget: make_plan(manager, MODEL, PROFILE, CONTEXT, budget, strategy=strategy)


def test_a_curve_goes_from_nothing_resident_to_everything() -> None:
    points = curve_of().points
    assert points[0].resident_weight_bytes == 0
    assert points[-1].resident_weight_bytes == max(point.resident_weight_bytes for point in points)
    assert [point.budget_bytes for point in points] == sorted(point.budget_bytes for point in points)


def test_budgets_without_a_plan_are_left_out() -> None:
    assert len(curve_of("gpu_only").points) < len(curve_of().points)


def test_the_knee_is_where_the_curve_bends() -> None:
    waits = (10.0, 4.0, 3.0, 2.0, 1.0)
    curve = BudgetCurve(tuple(CurvePoint(at, 0, wait, 1e9) for at, wait in enumerate(waits)), 1)
    assert curve.knee.budget_bytes == 1


class Silent:
    """A planner that predicts nothing."""

    @hookimpl
    def xlm_plan(self, budget: int) -> Plan:
        return tiny_plan(MODEL, budget_bytes=budget)


def test_a_planner_without_predictions_has_no_curve() -> None:
    with plugin_manager(Silent()) as manager, pytest.raises(PlanError, match="predicts no speeds"):
        budget_curve(planner(manager), MODEL, PROFILE, CONTEXT)
