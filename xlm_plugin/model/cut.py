"""Cutting a feed-forward network in two, where a budget ends inside it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from xlm_plugin.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.model.graph import ModelGraph, Shard, Tensor

_DOWN = re.compile(r"\bffn_down\.|\bdown_proj\.")


def cut_ffn(model: ModelGraph, layer: int) -> ModelGraph:
    """Return ``model`` with the dense FFN of ``layer`` as two shards, ``ffn.up_gate`` and ``ffn.down``.

    The tensors, and so the fingerprint, stay the same. Raises UsageError where there is nothing to cut.
    """
    shards = list(model.shards)
    for place, shard in enumerate(shards):
        if shard.layer == layer and shard.kind == "ffn":
            shards[place : place + 1] = _halves(shard)
            return replace(model, shards=tuple(shards))
    raise UsageError(f"Layer {layer} of '{model.name}' has no dense FFN to cut.")


def _halves(shard: Shard) -> tuple[Shard, Shard]:
    down = tuple(tensor for tensor in shard.tensors if _DOWN.search(tensor.name))
    up_gate = tuple(tensor for tensor in shard.tensors if tensor not in down)
    if not all(any(tensor.movable for tensor in half) for half in (up_gate, down)):
        raise UsageError(f"The shard '{shard.name}' has no two matrices to cut between.")
    return _part(shard, "up_gate", up_gate), _part(shard, "down", down)


def _part(shard: Shard, name: str, tensors: Sequence[Tensor]) -> Shard:
    return replace(
        shard,
        name=f"{shard.name}.{name}",
        tensors=tuple(tensors),
        flops_per_token=2 * sum(tensor.parameters for tensor in tensors),
        active_bytes=sum(tensor.bytes for tensor in tensors),
    )
