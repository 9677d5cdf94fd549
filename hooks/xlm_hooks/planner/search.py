"""The best layout of a budget: which shards are resident, beside which staging."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.planner.candidates import ALL_SETS_OF, candidate_sets, set_bytes
from xlm_plugin.plan.padding import device_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from xlm_hooks.planner.expert_cells import ExpertCells
    from xlm_hooks.planner.patterns import Filler
    from xlm_plugin.plan.simulate import Flags
    from xlm_plugin.plan.step_costs import Floats

    Integers = NDArray[np.int64]

SLOTS = (2, 3)
_CHUNK = 64


@dataclass(frozen=True, slots=True)
class Layout:
    """What the device holds, what the workload then takes, and how many bytes that is.

    ``resident`` is a row of flags; staging has ``slots`` of ``slot_bytes``, and the expert cache holds
    ``cached_experts``.
    """

    resident: Flags
    slots: int
    slot_bytes: int
    bytes: int
    seconds: float
    cached_experts: int = 0


@dataclass(frozen=True)
class _Layouts:
    """All candidates, one a row, with bounds of what the workload and each tier's step take in them."""

    resident: Flags
    slots: Integers
    slot_bytes: Floats
    cached_experts: Integers
    resident_bytes: Integers
    bytes: Integers
    least_by_tier: Sequence[Floats]
    least_seconds: Floats

    def layout(self, row: int, seconds: float) -> Layout:
        return Layout(
            resident=self.resident[row],
            slots=int(self.slots[row]),
            slot_bytes=int(self.slot_bytes[row]),
            bytes=int(self.bytes[row]),
            seconds=seconds,
            cached_experts=int(self.cached_experts[row]),
        )


@dataclass(frozen=True)
class Search:
    """Searches layouts of the shards of ``tiers``: each filler with the number of its steps.

    Candidates do not depend on the budget and the best of those that fit is found for certain, so more
    budget never predicts slower.
    """

    tiers: Sequence[tuple[Filler, float]]
    divisible_experts: bool = True
    cells: ExpertCells | None = None
    all_sets_of: int = ALL_SETS_OF

    def best(self, budget_bytes: int) -> Layout | None:
        """Return the layout of the shortest workload within ``budget_bytes``; None where nothing applies.

        Of layouts as short the one with most resident bytes is taken.
        """
        layouts = self._layouts
        fits = np.flatnonzero(layouts.bytes <= budget_bytes)
        fits = fits[np.argsort(layouts.least_seconds[fits], kind="stable")]
        best: tuple[float, int, int] = (np.inf, 0, -1)
        for start in range(0, len(fits), _CHUNK):
            rows = fits[start : start + _CHUNK]
            if layouts.least_seconds[rows[0]] > best[0]:
                break
            seconds = self._seconds(rows, best[0])
            best = min(
                best, *zip(seconds.tolist(), -layouts.resident_bytes[rows], rows.tolist(), strict=True)
            )
        if best[2] < 0 or not np.isfinite(best[0]):
            return None
        return layouts.layout(best[2], best[0])

    @property
    def least_bytes(self) -> int:
        """What the smallest layout takes in which some pattern of every tier applies; 0 if there is none."""
        layouts = self._layouts
        order = np.argsort(layouts.bytes, kind="stable")
        for start in range(0, len(order), _CHUNK):
            rows = order[start : start + _CHUNK]
            works = np.flatnonzero(np.isfinite(self._seconds(rows, np.inf)))
            if len(works):
                return int(layouts.bytes[rows[works[0]]])
        return 0

    def _seconds(self, rows: NDArray[np.intp], limit: float) -> Floats:
        """Return what the workload takes in each layout, or anything above ``limit``."""
        layouts = self._layouts
        seconds = layouts.least_seconds[rows].copy()
        kinds = np.column_stack([layouts.slots[rows], layouts.cached_experts[rows]])
        for slots, cached in np.unique(kinds, axis=0):
            same = np.flatnonzero((kinds == (slots, cached)).all(axis=1))
            for tier, steps in enumerate(self._steps):
                same = same[seconds[same] <= limit]
                at = rows[same]
                found, _ = self._fillers[int(cached)][tier].best(
                    layouts.resident[at], layouts.slot_bytes[at], int(slots)
                )
                seconds[same] += steps * (found - layouts.least_by_tier[tier][at])
        return seconds

    @cached_property
    def _steps(self) -> list[float]:
        return [steps for _, steps in self.tiers]

    @cached_property
    def _fillers(self) -> dict[int, list[Filler]]:
        """The fillers of all tiers, by the experts that are cached."""
        sizes = {0, self.cells.least if self.cells else 0}
        return {cached: [replace(f, cached_experts=cached) for f, _ in self.tiers] for cached in sizes}

    @cached_property
    def _layouts(self) -> _Layouts:
        shards = self.tiers[0][0].shards
        sets = candidate_sets(
            shards,
            [filler.costs for filler, _ in self.tiers],
            self._unconfined_seconds,
            divisible_experts=self.divisible_experts,
            all_sets_of=self.all_sets_of,
        )
        on_host = np.broadcast_to(self.tiers[0][0].costs.on_host, len(shards))
        if on_host.any():
            sets = np.unique(sets & ~on_host, axis=0)
        sizes = np.array([device_bytes(shard) for shard in shards], dtype=np.int64)
        stagings = [(0, 0)] + [(slots, int(size)) for slots in SLOTS for size in np.unique(sizes)]
        experts = np.array([shard.kind == "experts" for shard in shards])
        blocks = []
        for count, size in stagings:
            # A ring for shards of a size of which none is left to stream is of no use.
            rows = sets[(~sets & ~on_host & (sizes == size)).any(axis=1)] if count else sets
            blocks.append(self._bounded(rows, count, size, 0))
            selecting = rows[(~rows & ~on_host & experts).any(axis=1)]
            if self.cells and len(selecting):
                blocks.append(self._bounded(selecting, count, size, self.cells.least))
        return _joined(blocks)

    def _bounded(self, resident: Flags, slots: int, slot_bytes: int, cached_experts: int) -> _Layouts:
        """Return the layouts of some sets beside one staging and one expert cache."""
        count = len(resident)
        size = np.full(count, float(slot_bytes))
        resident_bytes = set_bytes(self.tiers[0][0].shards, resident)
        cache_bytes = self.cells.least_bytes if self.cells and cached_experts else 0
        least_by_tier = [filler.least_seconds(resident, size) for filler in self._fillers[cached_experts]]
        return _Layouts(
            resident=resident,
            slots=np.full(count, slots),
            slot_bytes=size,
            cached_experts=np.full(count, cached_experts),
            resident_bytes=resident_bytes,
            bytes=resident_bytes + slots * slot_bytes + cache_bytes,
            least_by_tier=least_by_tier,
            least_seconds=np.sum(
                [steps * least for steps, least in zip(self._steps, least_by_tier, strict=True)], axis=0
            ),
        )

    def _unconfined_seconds(self, resident: Flags) -> Floats:
        """Return what the workload takes where every shard may stream."""
        anything = np.full(len(resident), np.inf)
        by_tier = [steps * filler.best(resident, anything, SLOTS[0])[0] for filler, steps in self.tiers]
        seconds: Floats = np.sum(by_tier, axis=0)
        return seconds


def _joined(blocks: Sequence[_Layouts]) -> _Layouts:
    columns = {
        field.name: np.concatenate([getattr(block, field.name) for block in blocks])
        for field in fields(_Layouts)
        if field.name != "least_by_tier"
    }
    tiers = zip(*(block.least_by_tier for block in blocks), strict=True)
    return _Layouts(**columns, least_by_tier=[np.concatenate(tier) for tier in tiers])
