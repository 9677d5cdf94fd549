"""The planner, asked with few words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_hooks.planner.best import Planner
from xlm_hooks.planner.fixed import fixed_ledger
from xlm_hooks.planner.strategies import Dynamic, GpuOnly, Static
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.testing import fake_device, fake_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xlm_plugin.machine.document import Machine
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan
    from xlm_plugin.plan.strategy import Objective, Strategy

BUILT_IN = (Dynamic(), Static(), GpuOnly())
CONTEXT = PlannedContext(tokens=512)


def plan_model(
    model: ModelGraph,
    weights_bytes: int,
    *,
    context: PlannedContext = CONTEXT,
    machine: Machine | None = None,
    objective: Objective = "e2e",
    strategies: Sequence[Strategy] = BUILT_IN,
) -> Plan:
    """Return a plan with ``weights_bytes`` for weights and staging, beyond what the engine needs anyway."""
    machine = machine or fake_machine()
    fixed_bytes = fixed_ledger(model, context, machine.device or fake_device()).total_bytes
    planner = Planner(model, Profile(machine), context, objective, strategies)
    return planner.plan(fixed_bytes + weights_bytes)


@pytest.fixture(scope="session")
def plan() -> Callable[..., Plan]:
    return plan_model
