"""A plan put through the simulator: its steps, shard by shard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from xlm_plugin.errors import PlanError
from xlm_plugin.plan.simulate import codes, simulate, simulate_step, timeline
from xlm_plugin.plan.step_costs import HostSide, cost_model
from xlm_plugin.plan.workload import typical_workload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import Plan, PlannedShard
    from xlm_plugin.plan.simulate import Codes, ShardTimes, Step, Steps
    from xlm_plugin.plan.step_costs import CostModel, StepCosts, StepLoad
    from xlm_plugin.plan.workload import Workload


@dataclass(frozen=True)
class SimulatedPlan:
    """``plan`` for ``model`` on the machine of ``profile``."""

    plan: Plan
    model: ModelGraph
    profile: Profile

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """The shards that the plan places, in its order; a plan may cut the model's own.

        Raises PlanError for tensors that the model does not have.
        """
        owners = {tensor.name: shard for shard in self.model.shards for tensor in shard.tensors}
        return tuple(_placed(shard, owners) for shard in self.plan.shards)

    @cached_property
    def workload(self) -> Workload:
        """What a typical answer in the plan's context takes."""
        return typical_workload(self.plan.context)

    @property
    def slots(self) -> int:
        """Slots of staging to simulate with."""
        return max(1, self.plan.staging.slots)

    @property
    def cached_experts(self) -> int:
        """Cached experts to count on: those of one layer, however many more are kept."""
        return max(shard.experts for shard in self.plan.shards) if self.plan.expert_cache else 0

    def costs(self, new_tokens: int) -> StepCosts:
        """Return what a typical step of ``new_tokens`` costs, one element a shard."""
        return self._cost_model.costs(self.workload.load(new_tokens))

    def placements(self, new_tokens: int) -> Codes:
        """Return the placements of the tier that such a step uses."""
        tier = self.plan.tier_for(new_tokens)
        selecting = [shard.name for shard in self.plan.shards if self.plan.selects_experts(shard, tier)]
        return codes(self.shards, tier.placements, selecting)

    def outcome(self, new_tokens: int, placements: Codes) -> Steps:
        """Return the outcome of a typical step for each row of ``placements``, whatever is planned."""
        return simulate(self.costs(new_tokens), placements, self.slots, cached_experts=self.cached_experts)

    def step(self, new_tokens: int) -> Step:
        """Return the outcome of a typical step."""
        return self.step_of(self.workload.load(new_tokens))

    def step_of(self, load: StepLoad) -> Step:
        """Return the outcome of a step of ``load``."""
        return simulate_step(
            self._cost_model.costs(load),
            self.placements(load.new_tokens),
            self.slots,
            cached_experts=self.cached_experts,
        )

    def timeline(self, new_tokens: int) -> list[ShardTimes]:
        """Return when each shard of a typical step is copied and computed."""
        return timeline(
            self.costs(new_tokens),
            self.placements(new_tokens),
            self.slots,
            cached_experts=self.cached_experts,
        )

    @cached_property
    def _cost_model(self) -> CostModel:
        host = HostSide(self.plan.host_layers, frozenset(self.plan.host_kv_layers))
        return cost_model(self.model, self.shards, self.profile, host)


def _placed(planned: PlannedShard, owners: Mapping[str, Shard]) -> Shard:
    """Return the model's shard of those tensors, or the part of it that they are."""
    if unknown := [name for name in planned.tensors if name not in owners]:
        raise PlanError(f"The plan places '{unknown[0]}', which the model does not have.")
    owner = owners[planned.tensors[0]]
    tensors = tuple(tensor for tensor in owner.tensors if tensor.name in planned.tensors)
    share = sum(tensor.bytes for tensor in tensors) / owner.movable_bytes
    if share >= 1:
        return owner
    return replace(
        owner,
        name=planned.name,
        tensors=tensors,
        flops_per_token=int(owner.flops_per_token * share),
        active_bytes=int(owner.active_bytes * share),
    )
