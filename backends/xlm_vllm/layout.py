"""Which pinned shards are resident, and how large staging slots are, in a given room."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class ShardNeeds:
    """What one shard asks for: resident where there is room, or a slot in some tier."""

    bytes: int
    pinned: bool
    streamed: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """Whether each shard is resident, by its index, and the bytes of one slot; 0 where nothing streams."""

    resident: tuple[bool, ...]
    slot_bytes: int


def choose_layout(shards: Sequence[ShardNeeds], slots: int, room_bytes: int) -> Layout | None:
    """Return the layout with the most resident shards that fits ``room_bytes``, or None.

    What must go: first the last shard that the slots hold anyway, then the smallest, so that slots
    grow as little as they can.
    """
    for bytes_taken, layout in _layouts(shards, slots):
        if bytes_taken <= room_bytes:
            return layout
    return None


def least_room(shards: Sequence[ShardNeeds], slots: int) -> int:
    """Return the smallest room in bytes for which there is a layout."""
    return min(bytes_taken for bytes_taken, _ in _layouts(shards, slots))


def _layouts(shards: Sequence[ShardNeeds], slots: int) -> list[tuple[int, Layout]]:
    resident = [shard.pinned for shard in shards]
    slot_bytes = max((shard.bytes for shard in shards if shard.streamed), default=0)
    found = []
    while True:
        resident_bytes = sum(shard.bytes for shard, stays in zip(shards, resident, strict=True) if stays)
        found.append((resident_bytes + slots * slot_bytes, Layout(tuple(resident), slot_bytes)))
        staying = [index for index, stays in enumerate(resident) if stays]
        if not staying:
            return found
        in_slots = [index for index in staying if shards[index].bytes <= slot_bytes]
        victim = in_slots[-1] if in_slots else min(staying, key=lambda index: shards[index].bytes)
        resident[victim] = False
        slot_bytes = max(slot_bytes, shards[victim].bytes)
