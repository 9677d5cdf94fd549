"""Shards that cost and weigh the same, and which of a group become resident."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from xlm_plugin.plan.padding import device_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from xlm_plugin.model.graph import Shard, ShardKind
    from xlm_plugin.plan.simulate import Flags
    from xlm_plugin.plan.step_costs import StepCosts


@dataclass(frozen=True)
class Group:
    """Positions of shards alike, of ``shard_bytes`` each on the device."""

    kind: ShardKind
    shard_bytes: int
    members: NDArray[np.intp]

    def first(self, count: int, *, spread: bool) -> NDArray[np.intp]:
        """Return ``count`` members: the last ones, or evenly spread ones."""
        size = len(self.members)
        if not spread:
            return self.members[size - count :]
        return self.members[(np.arange(count) * size) // max(1, count)]


def group_shards(shards: Sequence[Shard], costs: Iterable[StepCosts]) -> tuple[Group, ...]:
    """Return the groups of ``shards`` that have the same bytes and the same ``costs``, in order."""
    rows = [
        np.broadcast_to(array, len(shards))
        for each in costs
        for array in (each.device, each.host, each.device_cache, each.copy, each.on_host, each.cache_on_host)
    ]
    members: dict[tuple[object, ...], list[int]] = {}
    for at, shard in enumerate(shards):
        alike = (shard.kind, device_bytes(shard), *(float(row[at]) for row in rows))
        members.setdefault(alike, []).append(at)
    return tuple(
        Group(shards[found[0]].kind, device_bytes(shards[found[0]]), np.array(found, dtype=np.intp))
        for found in members.values()
    )


def resident_flags(
    groups: Sequence[Group], counts: NDArray[np.int64], shards: int, *, spread: bool = False
) -> Flags:
    """Return who is resident (rows x ``shards``) for each row of ``counts`` (rows x groups)."""
    flags = np.zeros((len(counts), shards), dtype=bool)
    for group, of_group in zip(groups, counts.T, strict=True):
        for count in np.unique(of_group):
            rows = np.flatnonzero(of_group == count)
            flags[np.ix_(rows, group.first(int(count), spread=spread))] = True
    return flags
