"""Sets of resident shards that may be the best for some budget; which they are does not depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.planner.groups import group_shards, resident_flags
from xlm_hooks.planner.knapsack import frontier
from xlm_plugin.plan.padding import device_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from xlm_hooks.planner.groups import Group
    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.simulate import Flags
    from xlm_plugin.plan.step_costs import Floats, StepCosts

    Seconds = Callable[[Flags], Floats]

# Up to this many shards every set is a candidate.
ALL_SETS_OF = 10
# Of larger models, one candidate of each kind for this share of the weights.
SETS_PER_MODEL = 256


def candidate_sets(
    shards: Sequence[Shard],
    costs: Sequence[StepCosts],
    seconds: Seconds,
    *,
    divisible_experts: bool = True,
    all_sets_of: int = ALL_SETS_OF,
) -> Flags:
    """Return sets of resident shards (rows x shards).

    ``seconds`` predicts what is to be short for such rows. Small models get every set. Others get the
    frontier of a knapsack whose values are gains measured by ``seconds``, once from nothing and once from
    everything resident, and sets of whole layers, which is what stock engines choose from.
    """
    if len(shards) <= all_sets_of:
        sets: Flags = (np.arange(2 ** len(shards))[:, np.newaxis] >> np.arange(len(shards))) & 1 == 1
    else:
        groups = group_shards(shards, costs)
        counts = np.vstack([_frontier_counts(groups, len(shards), seconds, filled=f) for f in (False, True)])
        packed, spread = (resident_flags(groups, counts, len(shards), spread=s) for s in (False, True))
        sets = np.unique(np.vstack([packed, spread, _whole_layers(shards)]), axis=0)
    return sets if divisible_experts else sets[_keeps_experts_together(shards, sets)]


def _frontier_counts(
    groups: Sequence[Group], shards: int, seconds: Seconds, *, filled: bool
) -> NDArray[np.int64]:
    """Return how many of each group become resident, by gains measured with the others out or in."""
    classes = []
    for at, group in enumerate(groups):
        options = np.arange(len(group.members) + 1)
        counts = np.tile([len(other.members) * filled for other in groups], (len(options), 1))
        counts[:, at] = options
        gained = seconds(resident_flags(groups, counts, shards))
        classes.append((options * group.shard_bytes, gained[0] - gained))
    return frontier(classes, SETS_PER_MODEL).options


def _whole_layers(shards: Sequence[Shard]) -> Flags:
    """Return the output head and ever more of the last layers."""
    layers = np.array([-1 if shard.layer is None else shard.layer for shard in shards])
    firsts = np.unique(layers[layers >= 0])
    last_layers = layers[np.newaxis] >= firsts[:, np.newaxis]
    sets: Flags = np.vstack([np.zeros((1, len(shards)), dtype=bool), last_layers]) | (layers == -1)
    return sets


def _keeps_experts_together(shards: Sequence[Shard], sets: Flags) -> Flags:
    """Return which sets hold all routed experts or none.

    On unified memory both halves would read the same memory: ollama and llama.cpp users measure half the
    speed.
    """
    experts = sets[:, [shard.kind == "experts" for shard in shards]]
    together: Flags = np.all(experts, axis=1) | ~np.any(experts, axis=1)
    return together


def set_bytes(shards: Sequence[Shard], sets: Flags) -> NDArray[np.int64]:
    """Return the device bytes of each row of ``sets``."""
    sizes = np.array([device_bytes(shard) for shard in shards], dtype=np.int64)
    total: NDArray[np.int64] = np.where(sets, sizes, 0).sum(axis=1)
    return total
