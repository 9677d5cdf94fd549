"""Speed against VRAM: what each further byte of budget buys."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.errors import DoesNotFitError, PlanError
from xlm_plugin.plan.memory import estimate
from xlm_plugin.plan.workload import typical_workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan, PlannedContext

STEPS = 16


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What a budget gives: seconds to the first token of a typical prompt, and tokens/s in decode."""

    budget_bytes: int
    resident_weight_bytes: int
    first_token_seconds: float
    tokens_per_s: float


@dataclass(frozen=True, slots=True)
class BudgetCurve:
    """Points by rising budget, from the least that works to where everything fits.

    ``knee`` is the point after which a further byte buys least: of the seconds of a typical answer, the one
    farthest below the straight line between both ends.
    """

    points: tuple[CurvePoint, ...]
    answer_tokens: int

    @property
    def knee(self) -> CurvePoint:
        """The point where the curve bends most."""
        first, last = self.points[0], self.points[-1]
        span_bytes = max(1, last.budget_bytes - first.budget_bytes)

        def below_the_line(point: CurvePoint) -> float:
            share = (point.budget_bytes - first.budget_bytes) / span_bytes
            line = self._seconds(first) + share * (self._seconds(last) - self._seconds(first))
            return line - self._seconds(point)

        return max(self.points, key=below_the_line)

    def _seconds(self, point: CurvePoint) -> float:
        return point.first_token_seconds + self.answer_tokens / point.tokens_per_s


def budget_curve(
    plan: Callable[[int], Plan], model: ModelGraph, profile: Profile, context: PlannedContext
) -> BudgetCurve:
    """Return the curve of ``model``; ``plan`` returns the plan for a budget.

    Budgets for which there is no plan are left out. Raises like ``plan`` for the largest budget, and
    PlanError where a planner predicts nothing.
    """
    memory = estimate(model, context, device=profile.machine.device)
    least, all_ = memory.fixed_bytes, memory.device_bytes
    points = []
    for step in range(STEPS):
        with suppress(DoesNotFitError):
            points.append(_point(plan(least + (all_ - least) * step // STEPS)))
    points.append(_point(plan(all_)))
    return BudgetCurve(tuple(points), typical_workload(context).answer_tokens)


def _point(plan: Plan) -> CurvePoint:
    workload = typical_workload(plan.context)
    decode, prefill = (plan.tier_for(tokens).prediction for tokens in (1, workload.prefill_tokens))
    if decode is None or prefill is None:
        raise PlanError("The planner predicts no speeds, so there is no curve of them.")
    return CurvePoint(
        budget_bytes=plan.budget_bytes,
        resident_weight_bytes=plan.ledger.resident_weight_bytes,
        first_token_seconds=workload.prefill_steps * prefill.step_seconds,
        tokens_per_s=1 / decode.step_seconds,
    )
