"""The staging ring: streamed shards pass through equal slots, each always through the same one."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Transfer(Protocol):
    """A copy on its way to the device."""

    def wait(self) -> bool:
        """Let computing go on only after the copy; return whether it had arrived already."""


@dataclass
class RingCounts:
    """What passed through a ring: copies begun, and how often computing found its shard there."""

    copies: int = 0
    hits: int = 0
    waits: int = 0
    wait_seconds: float = 0.0


class Ring:
    """Keeps ``slots`` slots filled ahead of computing.

    ``copy`` starts copying a shard into a slot, after all computing that was issued before. A shard's
    slot follows from its position in the step's order, so that its address is the same in every step.
    """

    def __init__(self, slots: int, copy: Callable[[int, int], Transfer]) -> None:
        self.counts = RingCounts()
        self._copy = copy
        self._held: list[int | None] = [None] * slots
        self._transfers: list[Transfer | None] = [None] * slots
        self._order: tuple[int, ...] = ()
        self._positions: dict[int, int] = {}

    def begin(self, order: Sequence[int]) -> None:
        """Start the copies of the first shards of a step that streams ``order``."""
        if tuple(order) != self._order:
            self._order = tuple(order)
            self._positions = {shard: position for position, shard in enumerate(self._order)}
        for slot, shard in enumerate(self._order[: len(self._held)]):
            self._fill(slot, shard)

    def acquire(self, shard: int) -> int:
        """Return the slot that holds ``shard``, for all computing that is issued from here on."""
        slot = self._slot(self._positions[shard])
        self._fill(slot, shard)
        transfer, self._transfers[slot] = self._transfers[slot], None
        begun = time.perf_counter()
        if transfer is None or transfer.wait():
            self.counts.hits += 1
        else:
            self.counts.waits += 1
            self.counts.wait_seconds += time.perf_counter() - begun
        return slot

    def release(self, shard: int) -> None:
        """Start the copy of what comes next through the slot of ``shard``, perhaps in the next step."""
        position = self._positions[shard] + len(self._held)
        if position >= len(self._order):
            position = self._slot(position)
        self._fill(self._slot(position), self._order[position])

    def holds(self, shard: int) -> bool:
        """Whether ``shard`` is in a slot or on its way into one."""
        return shard in self._held

    def drain(self) -> None:
        """Wait for all copies and forget what the slots hold."""
        for transfer in self._transfers:
            if transfer is not None:
                transfer.wait()
        self._held = [None] * len(self._held)
        self._transfers = [None] * len(self._held)

    def _slot(self, position: int) -> int:
        return position % len(self._held)

    def _fill(self, slot: int, shard: int) -> None:
        if self._held[slot] == shard:
            return
        if (unused := self._transfers[slot]) is not None:
            unused.wait()
        self._held[slot] = shard
        self._transfers[slot] = self._copy(shard, slot)
        self.counts.copies += 1
