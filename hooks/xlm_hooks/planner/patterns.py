"""Which of the shards that are not resident stream: none, all, or an evenly spread share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulate import CPU, PIN, SELECT, STREAM, busy_seconds, simulate
from xlm_plugin.plan.step_costs import active_share, expert_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.simulate import Codes, Flags
    from xlm_plugin.plan.step_costs import Floats, StepCosts

# Copying whole experts pays once each of them serves about this many tokens of the step (ik_llama.cpp
# pull request 520).
TOKENS_PER_EXPERT = 32
# Where each shard is a large part of the model, an even share is too coarse.
_POLISHED_SHARDS = 12


@dataclass(frozen=True, slots=True)
class Pattern:
    """A share of what may stream, evenly spread; the rest runs on the CPU.

    ``experts`` is whether routed experts may stream. ``whole`` patterns apply only where everything that is
    not resident streams.
    """

    share: float
    experts: bool = True
    whole: bool = False


NOTHING = Pattern(0.0)
EVERYTHING = Pattern(1.0, whole=True)
MIXES = tuple(
    Pattern(eighths / 8, experts) for experts in (True, False) for eighths in (8, 7, 6, 5, 4, 3, 2, 1)
)


@dataclass(frozen=True)
class Filler:
    """Fills one tier: the shortest step that ``patterns`` give for a set of resident shards.

    With ``cached_experts``, routed experts for which a whole copy does not pay stream what a step selects.
    """

    shards: tuple[Shard, ...]
    costs: StepCosts
    new_tokens: int
    patterns: Sequence[Pattern]
    cached_experts: int = 0

    def placements(self, pattern: Pattern, resident: Flags, slot_bytes: Floats) -> tuple[Codes, Flags]:
        """Return placements (batch x shards) and, for each row, whether the pattern applies."""
        may = ~resident & self._movable(slot_bytes)
        if not pattern.whole:
            may &= self._may_stream(experts=pattern.experts)
        reached = may.cumsum(axis=1) * pattern.share
        streams = may & (np.floor(reached) > np.floor(reached - pattern.share))
        moving = np.where(self._selects, SELECT, STREAM)
        placements = np.where(resident, PIN, np.where(streams, moving, CPU)).astype(np.int8)
        if not pattern.whole:
            return placements, np.ones(len(resident), dtype=bool)
        return placements, ~(placements == CPU).any(axis=1) & ~self._copies_too_early(placements)

    def least_seconds(self, resident: Flags, slot_bytes: Floats) -> Floats:
        """Return a bound (batch) that no step is shorter than, whatever the pattern.

        A step is as long as the link or the computing takes, so as any weighted mean of the two, and that
        is least where each shard for itself takes the better place.
        """
        may = (self._sizes <= slot_bytes[:, np.newaxis]) & ~self.costs.on_host
        cache = np.where(self.costs.cache_on_host, self.costs.host_cache, self.costs.device_cache).sum()
        bounds = []
        for weight in (0.0, 0.25, 0.5, 0.75):
            device, host = (1 - weight) * self.costs.device, (1 - weight) * self.costs.host
            either = np.minimum(device + weight * self.costs.copy, host)
            rest = np.where(may & ~self._selects, either, host)
            if self.cached_experts:
                rest = np.where(self._selects, np.minimum(device, host), rest)
            bounds.append(np.where(resident, device, rest).sum(axis=1) + (1 - weight) * cache)
        least: Floats = np.maximum.reduce(bounds)
        return least

    def best(self, resident: Flags, slot_bytes: Floats, slots: int) -> tuple[Floats, Codes]:
        """Return the seconds (batch) of the shortest step and its placements; infinite where none applies."""
        seconds = np.full(len(resident), np.inf)
        chosen = np.zeros(resident.shape, dtype=np.int8)
        for pattern in self._distinct:
            placements, applies = self.placements(pattern, resident, slot_bytes)
            least = busy_seconds(self.costs, placements, cached_experts=self.cached_experts).least_seconds
            rows = np.flatnonzero(applies & (least < seconds))
            if not len(rows):
                continue
            found = self._seconds(placements[rows], slots)
            better = found < seconds[rows]
            seconds[rows[better]] = found[better]
            chosen[rows[better]] = placements[rows[better]]
        if len(self.shards) <= _POLISHED_SHARDS and MIXES[0] in self.patterns:
            for start in (NOTHING, MIXES[0]):
                placements, _ = self.placements(start, resident, slot_bytes)
                found = self._descend(placements, slot_bytes, slots)
                better = found < seconds
                seconds[better], chosen[better] = found[better], placements[better]
        return seconds, chosen

    def _descend(self, placements: Codes, slot_bytes: Floats, slots: int) -> Floats:
        """Let the shard that gains most change between streaming and the CPU, again and again, in place."""
        seconds = self._seconds(placements, slots)
        may = self._may_stream(experts=True) & ((self._sizes <= slot_bytes[:, np.newaxis]) | self._selects)
        moving = np.where(self._selects, SELECT, STREAM)
        for _ in self.shards:
            rows, at = np.nonzero(may & (placements != PIN))
            changed = placements[rows]
            each = np.arange(len(rows))
            changed[each, at] = moving[at] + CPU - changed[each, at]
            found = np.full(placements.shape, np.inf)
            found[rows, at] = self._seconds(changed, slots)
            best = found.argmin(axis=1)
            better = np.flatnonzero(found[np.arange(len(found)), best] < seconds)
            if not len(better):
                break
            seconds[better] = found[better, best[better]]
            placements[better, best[better]] = moving[best[better]] + CPU - placements[better, best[better]]
        return seconds

    def _movable(self, slot_bytes: Floats) -> Flags:
        """Return which shards (batch x shards) could stream, were they not resident."""
        fits = self._sizes <= slot_bytes[:, np.newaxis]
        movable: Flags = (fits | self._selects) & ~self.costs.on_host
        return movable

    def _seconds(self, placements: Codes, slots: int) -> Floats:
        return simulate(self.costs, placements, slots, cached_experts=self.cached_experts).step_seconds

    def _copies_too_early(self, placements: Codes) -> Flags:
        """Return where experts would stream that do not pay yet, unless there is no other way."""
        if all(pattern.whole for pattern in self.patterns):
            return np.zeros(len(placements), dtype=bool)
        early: Flags = ((placements == STREAM) & ~self._may_stream(experts=True)).any(axis=1)
        return early

    def _may_stream(self, *, experts: bool) -> Flags:
        return self._pays | self._selects if experts else self._is_dense

    @cached_property
    def _pays(self) -> Flags:
        return np.array([self.new_tokens >= least_streamed_tokens(shard) for shard in self.shards])

    @cached_property
    def _selects(self) -> Flags:
        """Which shards would stream what a step selects."""
        return (self.costs.experts > 0) & ~self._pays & (self.cached_experts > 0)

    @cached_property
    def _is_dense(self) -> Flags:
        return np.array([shard.kind != "experts" for shard in self.shards])

    @cached_property
    def _sizes(self) -> Floats:
        return np.array([float(device_bytes(shard)) for shard in self.shards])

    @cached_property
    def _distinct(self) -> tuple[Pattern, ...]:
        """The patterns without those that place as another does, where experts never stream."""
        if (self._may_stream(experts=True) & ~self._is_dense).any():
            return tuple(self.patterns)
        return tuple(dict.fromkeys(p if p.whole else replace(p, experts=False) for p in self.patterns))


def whole_from_tokens(shards: Iterable[Shard]) -> int:
    """Return from how many tokens on routed experts stream whole rather than as selected.

    0 where there are none, or where an expert cache cannot serve all of them.
    """
    experts = [shard for shard in shards if shard.kind == "experts"]
    found = {least_streamed_tokens(shard) for shard in experts}
    return found.pop() if len(found) == 1 and all(map(expert_count, experts)) else 0


def least_streamed_tokens(shard: Shard) -> int:
    """Return the size of the smallest step in which a copy of the shard can pay."""
    return round(TOKENS_PER_EXPERT / active_share(shard)) if shard.kind == "experts" else 1
