"""Which shards stay on the device: in a fixed order of worth, beside the staging that the rest needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.plan.padding import device_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xlm_plugin.model.graph import Shard, ShardKind

MIN_SLOTS = 2

# What a decode step reads whole comes before what it reads in part; what has a KV cache beside it first.
_RANKS: dict[ShardKind, int] = {"attn": 0, "ssm": 0, "output": 1, "shared_experts": 2}
_OTHERS = 3


@dataclass(frozen=True, slots=True)
class Stage:
    """Shards that become resident together before any of a later stage.

    While some of them are not resident, staging has two slots of ``slot_bytes`` (none for 0). A stage
    that is not ``divisible`` becomes resident whole or not at all.
    """

    shards: tuple[Shard, ...]
    slot_bytes: int
    divisible: bool = True


@dataclass(frozen=True, slots=True)
class Residents:
    """The names of resident shards, their device bytes, and the slot size that staging is for.

    Where ``missing_bytes`` is above 0, staging would have taken that much more and there is none.
    """

    names: frozenset[str]
    bytes: int
    slot_bytes: int = 0
    missing_bytes: int = 0


def by_worth(shards: Iterable[Shard]) -> tuple[Shard, ...]:
    """Return ``shards`` in the order in which they become resident; larger ones first within a kind."""
    return tuple(
        sorted(shards, key=lambda s: (_RANKS.get(s.kind, _OTHERS), -device_bytes(s), s.layer or 0, s.name))
    )


def choose_residents(stages: Sequence[Stage], capacity_bytes: int) -> Residents:
    """Return what to keep within ``capacity_bytes``, staging included.

    Monotone: more capacity never gives fewer bytes. Within a stage the order is fixed and a shard
    that does not fit is passed over, so where a larger capacity first differs it takes a shard that
    the smaller one could not hold.
    """
    resident: list[Shard] = []
    for stage in stages:
        left_bytes = capacity_bytes - _total(resident)
        if _total(stage.shards) <= left_bytes:
            resident += stage.shards
            continue
        left_bytes -= MIN_SLOTS * stage.slot_bytes
        if left_bytes < 0:
            return _residents(resident, missing_bytes=-left_bytes)
        if stage.divisible:
            resident += _first_fit(stage.shards, left_bytes)
        return _residents(resident, slot_bytes=stage.slot_bytes)
    return _residents(resident)


def _residents(shards: Sequence[Shard], *, slot_bytes: int = 0, missing_bytes: int = 0) -> Residents:
    return Residents(frozenset(shard.name for shard in shards), _total(shards), slot_bytes, missing_bytes)


def _total(shards: Iterable[Shard]) -> int:
    return sum(device_bytes(shard) for shard in shards)


def _first_fit(shards: Iterable[Shard], capacity_bytes: int) -> list[Shard]:
    chosen = []
    for shard in shards:
        if device_bytes(shard) <= capacity_bytes:
            chosen.append(shard)
            capacity_bytes -= device_bytes(shard)
    return chosen
