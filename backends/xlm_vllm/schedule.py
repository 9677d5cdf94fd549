"""What each shard does in the steps of a tier, given which shards are resident."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.plan.document import Plan, Tier


class Action(Enum):
    """How a shard's weights reach the computing of one step."""

    RESIDENT = "resident"
    STREAM = "stream"
    SELECT = "select"
    HOST = "host"


@dataclass(frozen=True)
class StepSchedule:
    """The actions of one tier, by shard index, and the shards that pass through the ring, in order."""

    new_tokens: int
    actions: tuple[Action, ...]
    streamed: tuple[int, ...]

    @property
    def is_idle(self) -> bool:
        """Whether nothing moves and nothing runs on the host."""
        return all(action is Action.RESIDENT for action in self.actions)


def step_schedules(plan: Plan, names: Sequence[str], resident: Sequence[bool]) -> dict[int, StepSchedule]:
    """Return each tier's schedule by its ``new_tokens``; ``names`` are the shards in order of execution."""
    return {tier.new_tokens: _schedule(plan, tier, names, resident) for tier in plan.tiers}


def _schedule(plan: Plan, tier: Tier, names: Sequence[str], resident: Sequence[bool]) -> StepSchedule:
    planned = {shard.name: shard for shard in plan.shards}

    def action(name: str, stays: bool) -> Action:
        if tier.placements[name] == "cpu":
            return Action.HOST
        if stays:
            return Action.RESIDENT
        if plan.selects_experts(planned[name], tier):
            return Action.SELECT
        return Action.STREAM

    actions = tuple(action(name, stays) for name, stays in zip(names, resident, strict=True))
    streamed = tuple(index for index, found in enumerate(actions) if found is Action.STREAM)
    return StepSchedule(tier.new_tokens, actions, streamed)
