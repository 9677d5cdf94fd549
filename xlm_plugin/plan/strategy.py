"""Strategies: named ways to fill a token tier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement
    from xlm_plugin.plan.step_costs import StepCosts

Objective = Literal["ttft", "tps", "e2e", "batch"]


@dataclass(frozen=True, slots=True)
class TierSetting:
    """What a strategy has to work with in one tier.

    ``resident`` names the shards that are on the device already. Staging has ``slots`` of ``slot_bytes``: a
    shard that takes more on the device cannot stream. With ``cached_experts`` the routed experts that
    ``selecting`` names stream without a slot, only what a step selects. ``new_tokens`` is the tier's upper
    bound, ``costs`` are those of such a step, to simulate placements with (``xlm_plugin.plan.simulate``).
    """

    new_tokens: int
    resident: frozenset[str]
    slot_bytes: int
    slots: int
    costs: StepCosts
    cached_experts: int = 0
    selecting: frozenset[str] = frozenset()


class Strategy(Protocol):
    """A named way to place the shards that are not resident."""

    name: str

    def place(self, shards: Sequence[Shard], setting: TierSetting) -> Mapping[str, Placement] | None:
        """Return a placement for every shard, or None where the strategy does not apply."""
