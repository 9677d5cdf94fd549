"""The built-in strategies for shards that are not resident."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.planner.patterns import EVERYTHING, MIXES, NOTHING, Filler
from xlm_plugin.plan.simulate import NAMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xlm_hooks.planner.patterns import Pattern
    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement
    from xlm_plugin.plan.strategy import TierSetting


class Stock:
    """Applies where everything is resident: the engine runs as it would without a plan."""

    name = "stock"

    def place(self, shards: Sequence[Shard], setting: TierSetting) -> Mapping[str, Placement] | None:
        """Return pin for every shard, or None."""
        everything = all(shard.name in setting.resident for shard in shards)
        return {shard.name: "pin" for shard in shards} if everything else None


class _Patterned:
    """Takes the best of its patterns."""

    name: str
    patterns: tuple[Pattern, ...]

    def place(self, shards: Sequence[Shard], setting: TierSetting) -> Mapping[str, Placement] | None:
        """Return a placement for every shard, or None where no pattern applies."""
        filler = Filler(
            tuple(shards), setting.costs, setting.new_tokens, self.patterns, setting.cached_experts
        )
        resident = np.array([[shard.name in setting.resident for shard in shards]])
        slot_bytes = np.array([setting.slot_bytes], dtype=float)
        seconds, placements = filler.best(resident, slot_bytes, max(1, setting.slots))
        if not np.isfinite(seconds[0]):
            return None
        return {shard.name: NAMES[code] for shard, code in zip(shards, placements[0], strict=True)}


class GpuOnly(_Patterned):
    """Streams whatever is not resident; does not apply where a shard is larger than a slot."""

    name = "gpu_only"
    patterns = (EVERYTHING,)


class Static(_Patterned):
    """Runs whatever is not resident on the CPU."""

    name = "static"
    patterns = (NOTHING,)


class Dynamic(_Patterned):
    """Streams as much of what is not resident as hides behind the rest, which runs on the CPU.

    Routed experts stream only in steps of ``E/k * 32`` tokens and more: a copy moves all of them,
    the CPU reads just the selected ones.
    """

    name = "dynamic"
    patterns = (NOTHING, *MIXES)


BUILT_IN = (Dynamic(), Static(), GpuOnly())


def patterns_of(strategies: Sequence[object]) -> tuple[Pattern, ...]:
    """Return what the search may try: the patterns of ``strategies``, all of them where none has any."""
    found = [pattern for strategy in strategies for pattern in getattr(strategy, "patterns", ())]
    return tuple(dict.fromkeys(found)) or (EVERYTHING, NOTHING, *MIXES)
