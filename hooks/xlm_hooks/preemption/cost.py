"""The cost of a switch. It is set by the weights and what carries them, not by a request's progress.

Of a preemption 98.5 to 99.4 % is loading weights again, and none of it depends on how far the model has come
(arXiv 2605.19593). Host memory holds a clean copy of every weight, so that nothing is copied on the way out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulate import PIN, simulate_step
from xlm_plugin.plan.step_costs import StepLoad, cost_model
from xlm_plugin.plan.workload import PROMPT_TOKENS
from xlm_plugin.schedule.job import SwitchCost

if TYPE_CHECKING:
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph


@dataclass(frozen=True, slots=True)
class LoadLaw:
    """The time to put weights on a device: a fixed part, and the bytes over what carries them."""

    fixed_seconds: float
    bytes_per_s: float

    def seconds(self, weight_bytes: float) -> float:
        """Return how long ``weight_bytes`` take."""
        return self.fixed_seconds + weight_bytes / self.bytes_per_s


def switch_cost(model: ModelGraph, profile: Profile) -> SwitchCost:
    """Return the cost of parking and waking ``model`` with everything resident.

    A park waits for the step that runs; a wake copies all weights. Raises PlanError without a device.
    """
    shards = tuple(shard for shard in model.shards if shard.home == "device" and shard.movable_bytes)
    costs = cost_model(model, shards, profile)
    law = LoadLaw(costs.rates.crossing_seconds, costs.rates.link_bytes_per_s)
    step = simulate_step(costs.costs(StepLoad(1, PROMPT_TOKENS)), np.full(len(shards), PIN))
    return SwitchCost(
        park_seconds=step.step_seconds, wake_seconds=law.seconds(sum(map(device_bytes, shards)))
    )
