"""One worker's share of a model: vLLM cuts matrices over ranks, and layers over pipeline stages."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph, Shard, Tensor

PLACED_KINDS = ("attn", "ssm", "ffn", "shared_experts", "experts")

_FLOATS = ("F32", "F16", "BF16")
# Every rank has these whole: MLA's compressing matrices serve all heads.
_REPLICATED = ("q_a_proj", "kv_a_proj_with_mqa", "fused_qkv_a_proj", "shared_expert_gate")
_KEYS_AND_VALUES = ("k_proj", "v_proj")


@dataclass(frozen=True, slots=True)
class Share:
    """``ranks`` workers share each layer; this one's stage has ``layers``, or all. Numbers have
    ``element_bytes`` where the checkpoint does not quantise them. ``kv_heads`` are those of the whole model.
    """

    ranks: int = 1
    layers: range | None = None
    element_bytes: int = 2
    kv_heads: int | None = None


def rank_graph(model: ModelGraph, share: Share) -> ModelGraph:
    """Return ``model`` as one worker has it.

    Only sub-layers of decoder layers move; embeddings, the output head and the vision tower stay on the
    device, where a tied head is the embedding itself.
    """
    shards, seen = [], set[str]()
    for shard in model.shards:
        if share.layers is not None and shard.layer is not None and shard.layer not in share.layers:
            continue
        own = tuple(tensor for tensor in shard.tensors if tensor.name not in seen)
        seen.update(tensor.name for tensor in own)
        shards.append(_cut_shard(shard, own, share))
    rule = model.cache
    if share.layers is not None:
        kept = tuple(layer for layer in rule.layers if layer.layer in share.layers)
        all_recurrent = recurrent_layers(model.shards)
        part = sum(s.kind == "ssm" for s in shards) / all_recurrent if all_recurrent else 0
        rule = replace(
            rule,
            layers=kept,
            state_conv_bytes=int(rule.state_conv_bytes * part),
            state_ssm_bytes=int(rule.state_ssm_bytes * part),
        )
    return replace(model, shards=tuple(shards), cache=rule, second_copy_bytes=0)


def recurrent_layers(shards: tuple[Shard, ...]) -> int:
    """Return the number of layers with a recurrent state."""
    return sum(shard.kind == "ssm" for shard in shards)


def _cut_shard(shard: Shard, tensors: tuple[Tensor, ...], share: Share) -> Shard:
    moves = shard.kind in PLACED_KINDS
    return replace(
        shard,
        tensors=tuple(_cut_tensor(tensor, share, moves=moves) for tensor in tensors),
        flops_per_token=shard.flops_per_token // share.ranks,
        active_bytes=shard.active_bytes // share.ranks,
        home="device",
    )


def _cut_tensor(tensor: Tensor, share: Share, *, moves: bool) -> Tensor:
    size_bytes = tensor.bytes
    if tensor.type in _FLOATS:
        size_bytes = tensor.parameters * share.element_bytes
    if tensor.movable:
        size_bytes = -(-size_bytes // _ranks_of(tensor, share))
    return replace(tensor, bytes=size_bytes, movable=tensor.movable and moves)


def _ranks_of(tensor: Tensor, share: Share) -> int:
    parts = tensor.name.split(".")
    if any(name in parts for name in _REPLICATED):
        return 1
    if share.kv_heads and any(name in parts for name in _KEYS_AND_VALUES):
        # With more ranks than heads, several have the same head.
        return min(share.ranks, share.kv_heads)
    return share.ranks
