"""From the tensor table to the shards, in execution order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from xlm_plugin.model.graph import Shard, Tensor
from xlm_plugin.model.roles import Role, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xlm_plugin.model.graph import ShardKind
    from xlm_plugin.model.stored import StoredTensor

_KIND_ORDER: tuple[ShardKind, ...] = ("attn", "ssm", "ffn", "experts", "shared_experts", "other", "mtp")


@dataclass(frozen=True, slots=True)
class ExpertUse:
    """How many routed experts there are, and how many of them one token selects; 1 of 1 when dense."""

    used: int = 1
    total: int = 1


@dataclass(frozen=True)
class ShardTable:
    """The shards, and what became of the rest of the tensor table."""

    shards: tuple[Shard, ...]
    second_copy_bytes: int
    unused_bytes: int


@dataclass(frozen=True, slots=True)
class _Part:
    """A tensor on its way into a shard."""

    tensor: Tensor
    role: Role


def build_shards(
    tensors: Iterable[tuple[StoredTensor, Role]],
    *,
    layers: int = 0,
    experts: ExpertUse = ExpertUse(),
    tied: bool = False,
    use_mtp: bool = False,
) -> ShardTable:
    """Return the shards of a model with ``layers`` layers; what lies beyond is MTP.

    ``tied`` models have no output head of their own: theirs is a second copy of the token embedding.
    """
    parts = [_part(tensor, role) for tensor, role in tensors]
    used = [part for part in parts if use_mtp or not _is_mtp(part.role, layers)]
    head = [
        replace(
            part,
            tensor=replace(part.tensor, movable=True),
            role=Role("output", "output", Stage.OUTPUT),
        )
        for part in used
        if tied and part.role.block == "token_embd"
    ]
    placed = [_drafted(part) if _is_mtp(part.role, layers) else part for part in used] + head
    return ShardTable(
        tuple(_shard(group, experts) for group in _in_order(placed)),
        second_copy_bytes=sum(part.tensor.bytes for part in head),
        unused_bytes=sum(part.tensor.bytes for part in parts) - sum(part.tensor.bytes for part in used),
    )


def _part(stored: StoredTensor, role: Role) -> _Part:
    movable = role.matrix and sum(extent > 1 for extent in stored.shape) >= 2
    return _Part(Tensor(stored.name, stored.type, stored.shape, stored.bytes, movable), role)


def _is_mtp(role: Role, layers: int) -> bool:
    return role.kind == "mtp" or (
        role.stage is Stage.LAYER and role.layer is not None and role.layer >= layers
    )


def _drafted(part: _Part) -> _Part:
    return replace(part, role=replace(part.role, stage=Stage.DRAFT))


def _in_order(parts: list[_Part]) -> Iterator[list[_Part]]:
    """Yield the tensors of each shard, in the same order however the files are sorted."""

    def block_of(part: _Part) -> tuple[Stage, int, str]:
        return part.role.stage, -1 if part.role.layer is None else part.role.layer, part.role.block

    in_order = sorted(parts, key=lambda part: (block_of(part), part.tensor.name))
    for (stage, _, _), block in groupby(in_order, key=block_of):
        if stage in (Stage.LAYER, Stage.DRAFT):
            yield from _settle(list(block))
        else:
            yield list(block)


def _settle(block: list[_Part]) -> list[list[_Part]]:
    """Group a layer's tensors by kind, and let groups without a matrix ride with a neighbour."""
    kinds = {part.role.kind for part in block}
    if "ssm" in kinds and not any(part.role.softmax for part in block):
        # The projections of linear attention are named like those of attention.
        block = [_moved(part, "ssm") if part.role.kind == "attn" else part for part in block]
    groups = [group for kind in _KIND_ORDER if (group := [part for part in block if part.role.kind == kind])]
    heavy = [any(part.tensor.movable for part in group) for group in groups]
    if not any(heavy):
        return groups
    settled: list[list[_Part]] = []
    waiting: list[_Part] = []
    for group, moves in zip(groups, heavy, strict=True):
        if not moves:
            waiting += group
            continue
        kind = group[0].role.kind
        settled.append([_moved(part, kind) for part in waiting] + group)
        waiting = []
    kind = settled[-1][-1].role.kind
    settled[-1] += [_moved(part, kind) for part in waiting]
    return settled


def _moved(part: _Part, kind: ShardKind) -> _Part:
    return replace(part, role=replace(part.role, kind=kind))


def _shard(parts: list[_Part], experts: ExpertUse) -> Shard:
    role = parts[-1].role
    weights = active_bytes = 0
    for part in parts:
        tensor = part.tensor
        if part.role.lookup:
            active_bytes += tensor.bytes // tensor.shape[-1]
        elif part.role.routed:
            weights += tensor.parameters * experts.used // experts.total
            active_bytes += tensor.bytes * experts.used // experts.total
        else:
            weights += tensor.parameters
            active_bytes += tensor.bytes
    return Shard(
        name=role.shard,
        kind=role.kind,
        layer=role.layer,
        tensors=tuple(part.tensor for part in parts),
        flops_per_token=2 * weights,
        active_bytes=active_bytes,
        home="host" if role.kind == "token_embd" else "device",
    )
