"""The time of a step: link, accelerator and host, simulated over the shards in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement
    from xlm_plugin.plan.step_costs import Floats, StepCosts

    Codes = NDArray[np.int8]
    Flags = NDArray[np.bool_]

Resource = Literal["link", "device", "host"]

PIN, STREAM, CPU = np.int8(0), np.int8(1), np.int8(2)
# A shard of routed experts that streams only what a step selects, into the expert cache.
SELECT = np.int8(3)
CODES: Final[Mapping[Placement, np.int8]] = {"pin": PIN, "stream": STREAM, "cpu": CPU}
_ROUNDING: Final = 1e-9
NAMES: Final[tuple[Placement, ...]] = ("pin", "stream", "cpu", "stream")


@dataclass(frozen=True, slots=True)
class Steps:
    """The outcome of one step for each of a batch of placements.

    ``link_seconds``, ``device_seconds`` and ``host_seconds`` are how long each resource is busy;
    ``crossing_seconds`` are spent between device and host, on neither.
    """

    step_seconds: Floats
    link_bytes: Floats
    link_seconds: Floats
    device_seconds: Floats
    host_seconds: Floats
    crossing_seconds: Floats


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of one step."""

    step_seconds: float
    link_bytes: int
    link_seconds: float
    device_seconds: float
    host_seconds: float
    crossing_seconds: float

    @property
    def utilisation(self) -> dict[Resource, float]:
        """Share of the step in which each resource is busy."""
        return {
            "link": self.link_seconds / self.step_seconds,
            "device": self.device_seconds / self.step_seconds,
            "host": self.host_seconds / self.step_seconds,
        }

    @property
    def bottleneck(self) -> Resource:
        """The busiest resource."""
        shares = self.utilisation
        return max(shares, key=lambda resource: shares[resource])

    @property
    def waiting_seconds(self) -> float:
        """What is left of the step: waits for copies, and what computing loses while they run."""
        working = self.device_seconds + self.host_seconds + self.crossing_seconds
        waiting = self.step_seconds - working
        return waiting if waiting > _ROUNDING * self.step_seconds else 0.0


@dataclass(frozen=True, slots=True)
class ShardTimes:
    """When one shard is copied and computed, in seconds from the step's begin.

    ``copy_begin`` and ``copy_end`` are equal where nothing is copied. Between ``begin`` and ``end`` come
    ``crossing_seconds``, then host or device: whichever of ``device_seconds`` and ``host_seconds`` there is.
    """

    copy_begin: float
    copy_end: float
    begin: float
    end: float
    crossing_seconds: float
    device_seconds: float
    host_seconds: float


def codes(
    shards: Sequence[Shard], placements: Mapping[str, Placement], selecting: Collection[str] = ()
) -> Codes:
    """Return ``placements`` as an array in the order of ``shards``.

    Shards that ``selecting`` names copy only what a step selects where they stream.
    """
    found = np.array([CODES[placements[shard.name]] for shard in shards], dtype=np.int8)
    selects = np.array([shard.name in selecting for shard in shards])
    return np.where(selects & (found == STREAM), SELECT, found)


def simulate_step(
    costs: StepCosts,
    placements: Codes,
    slots: int = 2,
    host_cache: Flags | None = None,
    cached_experts: int = 0,
) -> Step:
    """Return the outcome of one step. See ``simulate``."""
    found = simulate(costs, placements[np.newaxis], slots, host_cache, cached_experts)
    return Step(
        step_seconds=float(found.step_seconds[0]),
        link_bytes=int(found.link_bytes[0]),
        link_seconds=float(found.link_seconds[0]),
        device_seconds=float(found.device_seconds[0]),
        host_seconds=float(found.host_seconds[0]),
        crossing_seconds=float(found.crossing_seconds[0]),
    )


def timeline(
    costs: StepCosts,
    placements: Codes,
    slots: int = 2,
    host_cache: Flags | None = None,
    cached_experts: int = 0,
) -> list[ShardTimes]:
    """Return when each shard of one step is copied and computed. See ``simulate``."""
    row = placements[np.newaxis]
    busy = busy_seconds(costs, row, host_cache, cached_experts)
    return [
        ShardTimes(
            copy_begin=float(moment.copy_begin[0]),
            copy_end=float(moment.copy_end[0]),
            begin=float(moment.begin[0]),
            end=float(moment.end[0]),
            crossing_seconds=float(busy.crossing[0, at]),
            device_seconds=float(busy.device[0, at]),
            host_seconds=float(busy.host[0, at]),
        )
        for at, moment in enumerate(_walk(costs, row, busy, slots))
    ]


def simulate(
    costs: StepCosts,
    placements: Codes,
    slots: int = 2,
    host_cache: Flags | None = None,
    cached_experts: int = 0,
) -> Steps:
    """Return the outcome of each row of ``placements`` (batch x shards).

    Device and host take turns in the order of the shards; each change costs a crossing, and a step begins
    and ends on the host. Copies run ahead in order: the k-th streamed shard waits until the shard that
    held its slot, ``slots`` copies before, is done. ``host_cache`` (batch x shards, or shards) says whose
    KV cache lies in host memory, where the CPU attends over it, if not as in ``costs``, which may have a row
    for each of the batch.

    Selected experts are copied when their router is done, which the host learns by a crossing. The cache
    holds ``cached_experts``; all experts of the selecting shards are as likely to be among them.
    """
    busy = busy_seconds(costs, placements, host_cache, cached_experts)
    *_, last = _walk(costs, placements, busy, slots)
    return Steps(
        step_seconds=last.end,
        link_bytes=(busy.copied_share * costs.copy_bytes + costs.cache_copy_bytes).sum(axis=1),
        link_seconds=(busy.link + costs.cache_copy_bytes / costs.rates.link_bytes_per_s).sum(axis=1),
        device_seconds=busy.device.sum(axis=1),
        host_seconds=busy.host.sum(axis=1),
        crossing_seconds=busy.crossing.sum(axis=1),
    )


@dataclass(frozen=True, slots=True)
class Busy:
    """Seconds (batch x shards) that each resource spends on each shard, before anything waits.

    ``copied_share`` is the share of each shard that is copied.
    """

    link: Floats
    device: Floats
    host: Floats
    crossing: Floats
    copied_share: Floats

    @property
    def least_seconds(self) -> Floats:
        """A bound (batch) that no step is shorter than: the copies alone, and all the rest in turn."""
        computing = (self.device + self.host + self.crossing).sum(axis=1)
        least: Floats = np.maximum(self.link.sum(axis=1), computing)
        return least


def busy_seconds(
    costs: StepCosts, placements: Codes, host_cache: Flags | None = None, cached_experts: int = 0
) -> Busy:
    """Return how long each resource is busy. See ``simulate`` for the arguments."""
    on_host = placements == CPU
    cache_on_host = np.broadcast_to(costs.cache_on_host if host_cache is None else host_cache, on_host.shape)
    copied_share = _copied_share(costs, placements, cached_experts)
    return Busy(
        link=copied_share * costs.copy,
        device=np.where(on_host, 0.0, costs.device) + np.where(cache_on_host, 0.0, costs.device_cache),
        host=np.where(on_host, costs.host, 0.0) + np.where(cache_on_host, costs.host_cache, 0.0),
        crossing=costs.rates.crossing_seconds
        * (_crossings(costs, on_host, cache_on_host) + (placements == SELECT)),
        copied_share=copied_share,
    )


def _copied_share(costs: StepCosts, placements: Codes, cached_experts: int) -> Floats:
    streams: Floats = (placements == STREAM).astype(np.float64)
    selects = placements == SELECT
    if not selects.any():
        return streams
    selecting = np.where(selects, costs.experts, 0.0).sum(axis=1, keepdims=True)
    missed = 1.0 - np.minimum(1.0, cached_experts / np.maximum(1.0, selecting))
    return np.where(selects, costs.selected_share * missed, streams)


def _crossings(costs: StepCosts, on_host: Flags, cache_on_host: Flags) -> Floats:
    """Return how often each shard changes sides: before it, and twice where its cache lies opposite."""
    before = np.ones_like(on_host)
    before[:, 1:] = on_host[:, :-1]
    changes: Floats = (before != on_host).astype(np.float64)
    changes[:, -1] += ~on_host[:, -1]
    changes += 2.0 * ((costs.device_cache > 0) & (on_host != cache_on_host))
    return changes


def _lost_share(costs: StepCosts, on_host: Flags) -> Floats:
    """Return the share of its speed that what computes before each shard loses to a copy of that shard."""
    before = np.ones_like(on_host)
    before[:, 1:] = on_host[:, :-1]
    return np.where(before, 1 - costs.rates.host_copy_share, 1 - costs.rates.device_copy_share)


@dataclass(frozen=True, slots=True)
class _Moment:
    """When one shard is copied and computed in each row of a batch."""

    copy_begin: Floats
    copy_end: Floats
    begin: Floats
    end: Floats


def _walk(costs: StepCosts, placements: Codes, busy: Busy, slots: int) -> Iterator[_Moment]:
    """Yield the moments of each shard in turn."""
    slots = max(1, slots)
    rows = np.arange(len(placements))
    clock = np.zeros(len(placements))
    link_free = np.zeros(len(placements))
    slot_free = np.zeros((len(placements), slots))
    copies = np.zeros(len(placements), dtype=np.intp)
    work = busy.device + busy.host + busy.crossing
    lost_share = _lost_share(costs, placements == CPU)
    columns = (work, busy.link, placements == STREAM, placements == SELECT, lost_share)
    by_shard = zip(*(np.ascontiguousarray(each.T) for each in columns), strict=True)
    for compute, transfer, streams, selects, lost in by_shard:
        copies_now = streams | selects
        if not copies_now.any():
            begin, clock = clock, clock + compute
            yield _Moment(begin, begin, begin, clock)
            continue
        slot = copies % slots
        ready = np.where(selects, clock, slot_free[rows, slot])
        start = np.where(copies_now, np.maximum(link_free, ready), clock)
        done = start + transfer
        beside = np.maximum(np.minimum(clock, done) - start, 0.0)
        begin = np.maximum(clock + beside * lost, done)
        clock = begin + compute
        link_free = np.where(copies_now, done, link_free)
        slot_free[rows, slot] = np.where(streams, clock, slot_free[rows, slot])
        copies += streams
        yield _Moment(start, done, begin, clock)
