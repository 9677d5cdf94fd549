"""The planner's promises, measured: replay, ladder, regret and time."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

from xlm_hooks.planner.best import Planner
from xlm_hooks.planner.strategies import BUILT_IN
from xlm_hooks.replay.ladder import share_within_one
from xlm_hooks.replay.models import qwen3_235b
from xlm_hooks.replay.preemption import largest_error_seconds
from xlm_hooks.replay.published import PIPELINED_TOKENS_PER_S
from xlm_hooks.replay.regret import random_cases
from xlm_hooks.replay.speeds import (
    decode_cells,
    first_token_cells,
    kendall_tau,
    median_error,
    whole_layer_cells,
)
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.machine.rates import Rates

REGRET_CASES = ((150, 5), (45, 7), (5, 9))


@dataclass(frozen=True, slots=True)
class PlannerReport:
    """Errors and regrets as shares; ``kendall_tau`` is the least over models."""

    median_error: float
    whole_layers_median_error: float
    first_token_median_error: float
    kendall_tau: float
    within_one: float
    max_regret: float
    plan_seconds: float
    preemption_max_error_seconds: float


def planner_report(published: Profile, rates: Rates) -> PlannerReport:
    """Return the report; ``published`` with its ``rates`` is the machine of the published tables."""
    decode = decode_cells(rates)
    by_model = [
        [cell for cell in decode if cell.model == name]
        for name in {name for name, _ in PIPELINED_TOKENS_PER_S}
    ]
    return PlannerReport(
        median_error=median_error(decode),
        whole_layers_median_error=median_error(whole_layer_cells(rates)),
        first_token_median_error=median_error(first_token_cells(rates)),
        kendall_tau=min(map(kendall_tau, by_model)),
        within_one=share_within_one(),
        max_regret=max(case.regret() for count, most in REGRET_CASES for case in random_cases(count, most)),
        plan_seconds=_plan_seconds(published),
        preemption_max_error_seconds=largest_error_seconds(),
    )


def _plan_seconds(profile: Profile) -> float:
    """Return how long planning the largest published model takes, from nothing."""
    model, context = qwen3_235b(), PlannedContext(tokens=4096)
    start = perf_counter()
    Planner(model, profile, context, "e2e", BUILT_IN).plan(16 * GIB)
    return perf_counter() - start
