"""From a model, a machine and a budget to a plan, by whichever planner answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import DoesNotFitError, PluginError, UsageError
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan, PlannedContext
    from xlm_plugin.plan.strategy import Objective, Strategy
    from xlm_plugin.plugins import PluginManager


def make_plan(
    pm: PluginManager,
    model: ModelGraph,
    profile: Profile,
    context: PlannedContext,
    budget_bytes: int,
    objective: Objective = "e2e",
    strategy: str | None = None,
) -> Plan:
    """Return the plan of the first planner that answers, after telling ``xlm_plan_ready`` about it.

    ``strategy`` restricts the planner to the one of that name. Raises DoesNotFitError where the model
    does not fit, UsageError for an unknown strategy, PlanError for a plan of another model and
    PluginError where no planner answers.
    """
    plan: Plan | None = pm.hook.xlm_plan(
        model=model,
        profile=profile,
        context=context,
        budget=budget_bytes,
        objective=objective,
        strategies=_strategies(pm, strategy),
    )
    if plan is None:
        raise PluginError("No plugin makes plans.", "Let 'hooks' through in XLM_LOAD_PLUGINS.")
    plan.check_model(model)
    missing_bytes = plan.ledger.total_bytes - budget_bytes
    if missing_bytes > 0:
        raise DoesNotFitError(
            f"The planner's plan takes {format_bytes(missing_bytes)} more than the budget of "
            f"{format_bytes(budget_bytes)}.",
            missing_bytes=missing_bytes,
        )
    pm.hook.xlm_plan_ready(plan=plan)
    return plan


def _strategies(pm: PluginManager, name: str | None) -> Sequence[Strategy]:
    known: list[Strategy] = [strategy for found in pm.hook.xlm_strategies() for strategy in found]
    chosen = [strategy for strategy in known if name in (None, strategy.name)]
    if name is not None and not chosen:
        names = ", ".join(sorted(strategy.name for strategy in known))
        raise UsageError(f"There is no strategy '{name}'.", f"Known are: {names}.")
    return chosen
