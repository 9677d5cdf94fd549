"""The device's cache of routed experts: how large it must be for a step to run from it."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm
from typing import TYPE_CHECKING

from xlm_hooks.planner.patterns import whole_from_tokens
from xlm_plugin.plan.padding import ALIGNMENT_BYTES
from xlm_plugin.plan.step_costs import expert_count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.model.graph import Shard

_INDEX_BYTES = 4


@dataclass(frozen=True, slots=True)
class ExpertCells:
    """Equal cells that hold an expert of any layer each.

    ``least`` cells are enough for any step: all experts of a layer. What is selected takes
    ``whole_from_tokens * least`` indices beside them, and kernels may read into one cell more.
    """

    least: int
    cell_bytes: int
    whole_from_tokens: int

    @property
    def spare_bytes(self) -> int:
        """What the device takes beside the cells."""
        return self.cell_bytes + self.whole_from_tokens * self.least * _INDEX_BYTES

    @property
    def least_bytes(self) -> int:
        """What the smallest cache takes."""
        return self.least * self.cell_bytes + self.spare_bytes


def expert_cells(shards: Sequence[Shard]) -> ExpertCells | None:
    """Return the cells for the routed experts of ``shards``; None where a cache cannot serve them."""
    from_tokens = whole_from_tokens(shards)
    if not from_tokens:
        return None
    experts = [shard for shard in shards if shard.kind == "experts"]
    # Kernels count strides in blocks of each weight's type.
    types = {tensor.type for shard in experts for tensor in shard.tensors if tensor.movable}
    step = lcm(ALIGNMENT_BYTES, *map(_block_bytes, types))
    largest = max(map(_expert_bytes, experts))
    return ExpertCells(max(map(expert_count, experts)), -(-largest // step) * step, from_tokens)


def _expert_bytes(shard: Shard) -> int:
    parts = (t.bytes // t.shape[-1] for t in shard.tensors if t.movable)
    return sum(-(-part // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for part in parts)


def _block_bytes(type_: str) -> int:
    from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

    return GGML_QUANT_SIZES[GGMLQuantizationType[type_]][1]
