"""What the published runs placed where: by the paper's own priorities, and whole layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulate import CPU, PIN

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.simulate import Codes, Flags

# What the published runs take beside weights and KV, fitted to them.
SCRATCH_BYTES = 515e6
SCRATCH_BYTES_PER_TOKEN = 5.9e3


@dataclass(frozen=True, slots=True)
class Placed:
    """Where each shard lies, and whose KV cache is in host memory."""

    placements: Codes
    host_cache: Flags


def placeable(model: ModelGraph) -> tuple[Shard, ...]:
    """Return the shards that a budget is spent on."""
    return tuple(shard for shard in model.shards if shard.home == "device")


def pipelined(model: ModelGraph, context_tokens: int, budget_bytes: float) -> Placed:
    """Return attention with its KV first, then the output head, then FFN and experts, last layers first."""
    purse = _Purse(model, context_tokens, budget_bytes)
    for kinds in (("attn",), ("output",), ("ffn", "experts")):
        for at in reversed(range(len(purse.shards))):
            if purse.shards[at].kind in kinds:
                purse.buy([at])
    return purse.placed()


def whole_layers(model: ModelGraph, context_tokens: int, budget_bytes: float) -> Placed:
    """Return the output head and as many whole last layers, with their KV, as fit."""
    purse = _Purse(model, context_tokens, budget_bytes)
    layers: list[int | None] = [None, *reversed(range(model.shape.layers))]
    for layer in layers:
        if not purse.buy([at for at, shard in enumerate(purse.shards) if shard.layer == layer]):
            break
    return purse.placed()


class _Purse:
    """A budget, spent shard by shard. A layer's KV comes with its attention."""

    def __init__(self, model: ModelGraph, context_tokens: int, budget_bytes: float) -> None:
        self.shards = placeable(model)
        small_bytes = sum(shard.bytes - shard.movable_bytes for shard in self.shards)
        scratch_bytes = SCRATCH_BYTES + SCRATCH_BYTES_PER_TOKEN * context_tokens
        self._left_bytes = budget_bytes - small_bytes - scratch_bytes
        self._kv_bytes = model.cache.kv_bytes_per_token() * context_tokens / len(model.cache.layers)
        self._bought: set[int] = set()

    def buy(self, shards: list[int]) -> bool:
        cost_bytes = sum(
            device_bytes(self.shards[at]) + (self._kv_bytes if self.shards[at].kind == "attn" else 0)
            for at in shards
        )
        if cost_bytes > self._left_bytes:
            return False
        self._left_bytes -= cost_bytes
        self._bought.update(shards)
        return True

    def placed(self) -> Placed:
        bought = np.array([at in self._bought for at in range(len(self.shards))])
        attention = np.array([shard.kind == "attn" for shard in self.shards])
        return Placed(np.where(bought, PIN, CPU).astype(np.int8), attention & ~bought)
