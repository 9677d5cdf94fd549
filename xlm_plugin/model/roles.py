"""The part that one tensor plays in the shard graph, as its name tells it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ShardKind


class Stage(IntEnum):
    """When a tensor is used within one step."""

    ENCODER = 0
    PROJECTOR = 1
    EMBEDDING = 2
    INPUT = 3
    LAYER = 4
    OUTPUT = 5
    DRAFT = 6


@dataclass(frozen=True, slots=True)
class Role:
    """Where a tensor belongs.

    ``block`` is the layer's name (``blk.3``), or the name of a shard that is not part of a layer.
    ``matrix`` says that the name is that of an operand of MUL_MAT or MUL_MAT_ID that a plan may move.
    ``lookup`` tables are read one row per token. ``routed`` tensors hold routed experts. ``softmax`` marks a
    layer whose attention has a KV cache.
    """

    block: str
    kind: ShardKind
    stage: Stage
    layer: int | None = None
    matrix: bool = False
    lookup: bool = False
    routed: bool = False
    softmax: bool = False

    @property
    def shard(self) -> str:
        """The name of the shard."""
        return f"{self.block}.{self.kind}" if self.stage in (Stage.LAYER, Stage.DRAFT) else self.block
