"""The shards of one worker while it runs: where they are, what a step moves, and what it must not miss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import EngineError
from xlm_vllm.device_weights import DeviceWeights
from xlm_vllm.schedule import Action, StepSchedule, step_schedules

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from xlm_plugin.plan.document import Plan
    from xlm_vllm.copying import CopyStream
    from xlm_vllm.expert_cache import ExpertCache
    from xlm_vllm.weights import ShardWeights


class ShardRuntime:
    """Carries out a plan step by step. ``shards`` are this worker's, in order of execution."""

    def __init__(
        self, plan: Plan, shards: Sequence[ShardWeights], device: torch.device, copies: CopyStream
    ) -> None:
        self.plan = plan
        self.steps: dict[int, int] = {}
        self._names = [shard.name for shard in shards]
        self.shards = shards
        self._device_weights = DeviceWeights(plan, shards, device, copies)
        self._schedules = step_schedules(plan, self._names, self._device_weights.resident)
        self._schedule: StepSchedule | None = None
        self._entered: set[int] = set()
        self.is_idle = self._all_idle()

    @property
    def budget_bytes(self) -> int:
        return self._device_weights.budget_bytes

    @property
    def weights(self) -> DeviceWeights:
        """What lies on the device now."""
        return self._device_weights

    @property
    def expert_cache(self) -> ExpertCache:
        """The cache of selected experts. Only steps of a tier that selects may ask for it."""
        cache = self._device_weights.expert_cache
        assert cache is not None
        return cache

    def begin_step(self, new_tokens: int) -> None:
        """Choose the tier of a step of ``new_tokens`` tokens and start its first copies."""
        tier = self.plan.tier_for(new_tokens).new_tokens
        self.steps[tier] = self.steps.get(tier, 0) + 1
        self._schedule = self._schedules[tier]
        self._entered.clear()
        if self._schedule.streamed:
            self._device_weights.ring.begin(self._schedule.streamed)

    def finish_step(self) -> None:
        """End the step. Raises EngineError where it did not do what its schedule says."""
        schedule, self._schedule = self._schedule, None
        if schedule is None or self.is_idle:
            return
        missed = [name for index, name in enumerate(self._names) if index not in self._entered]
        if missed:
            raise EngineError(
                f"vLLM ran a step past shard '{missed[0]}': its weights were not where the plan has them.",
                "Report this with the model's name and vLLM's version.",
            )
        self._device_weights.check_moved_bytes()

    def enter(self, shard: int, tokens: int) -> Action:
        """Make ``shard`` ready for computing that is issued from here on, and return what it does.

        The first shard begins the step where no worker has, as in profiling and capturing.
        """
        if self._schedule is None or (shard == 0 and shard in self._entered):
            self.begin_step(tokens)
        assert self._schedule is not None
        self._entered.add(shard)
        action = self._schedule.actions[shard]
        if action is Action.STREAM:
            self._device_weights.bind_slot(shard)
        elif action is Action.RESIDENT:
            self._device_weights.bind_resident(shard)
        elif action is Action.HOST:
            self.shards[shard].bind(self.shards[shard].master)
        return action

    def leave(self, shard: int) -> None:
        """Let what comes next take the slot of ``shard``."""
        if self._schedule is not None and self._schedule.actions[shard] is Action.STREAM:
            self._device_weights.release_slot(shard)

    def resize(self, budget_bytes: int) -> bool:
        """Keep to another budget from the next step on, and return whether weights moved for it.

        Raises DoesNotFitError, and then changes nothing.
        """
        moved = self._device_weights.resize(budget_bytes)
        if moved:
            self._rearrange()
        return moved

    def park(self) -> None:
        """Give back all device memory of weights; the next step or ``wake`` takes it again."""
        self._device_weights.park()
        self.is_idle = False

    def wake(self) -> None:
        """Take the device memory of weights again, and fill it from the host's copies."""
        self._device_weights.wake()
        self.is_idle = self._all_idle()

    def close(self) -> None:
        """Finish copying and give back all device memory of weights."""
        self._device_weights.close()

    def _rearrange(self) -> None:
        self._schedules = step_schedules(self.plan, self._names, self._device_weights.resident)
        self._schedule = None
        self.is_idle = self._all_idle()

    def _all_idle(self) -> bool:
        return not self._device_weights.is_parked and all(
            schedule.is_idle for schedule in self._schedules.values()
        )
