"""Small models and plans, made of nothing: no file is read or written."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_plugin.model.cache import CacheContext, CacheRule, LayerCache
from xlm_plugin.model.graph import ModelGraph, Shape, Shard, Tensor
from xlm_plugin.plan.document import Ledger, Plan, PlannedContext, PlannedModel, PlannedShard, Staging, Tier
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.model.graph import ShardKind
    from xlm_plugin.plan.document import Placement

_TYPE_BYTES = {"F16": 2, "F32": 4}


def tiny_model(
    *,
    layers: int = 2,
    embedding_width: int = 64,
    ffn_width: int = 128,
    heads: int = 4,
    kv_heads: int = 2,
    vocabulary: int = 256,
    context_tokens: int = 512,
    experts: int = 0,
    experts_used: int = 2,
    tied: bool = False,
) -> ModelGraph:
    """Return a llama-like model in F16, named as in a GGUF file.

    With ``experts`` each layer has routed experts of ``ffn_width``, of which a token selects
    ``experts_used``. ``tied`` models use their embedding as output head.
    """
    head_width = embedding_width // heads
    kv_width = kv_heads * head_width
    embedding = _matrix("token_embd.weight", embedding_width, vocabulary)
    shards = [
        Shard("token_embd", "token_embd", None, (embedding,), 0, embedding.bytes // vocabulary, home="host"),
    ]
    for layer in range(layers):
        shards.append(_attention(layer, embedding_width, kv_width))
        if experts:
            shards.append(_experts(layer, embedding_width, ffn_width, experts, experts_used))
        else:
            shards.append(_ffn(layer, embedding_width, ffn_width))
    head = embedding if tied else _matrix("output.weight", embedding_width, vocabulary)
    shards.append(_shard("output", "output", None, _vector("output_norm.weight", embedding_width), head))
    return ModelGraph(
        name="tiny",
        architecture="llama",
        format="gguf",
        path=Path("tiny.gguf"),
        files=(Path("tiny.gguf"),),
        fingerprint=f"sha256:{hashlib.sha256(repr((heads, context_tokens, shards)).encode()).hexdigest()}",
        file_bytes=sum({t.name: t.bytes for shard in shards for t in shard.tensors}.values()),
        shape=Shape(
            layers=layers,
            embedding_width=embedding_width,
            ffn_width=ffn_width,
            head_count=heads,
            vocabulary=vocabulary,
            context_tokens=context_tokens,
            experts=experts,
            experts_used=experts_used if experts else 0,
        ),
        shards=tuple(shards),
        cache=CacheRule(tuple(LayerCache(layer, kv_width, kv_width) for layer in range(layers))),
        second_copy_bytes=embedding.bytes if tied else 0,
    )


def tiny_plan(
    model: ModelGraph,
    *,
    placement: Placement = "pin",
    tiers: Sequence[int] = (1, 512),
    context_tokens: int = 128,
    budget_bytes: int | None = None,
) -> Plan:
    """Return a plan with the same ``placement`` of every shard in every tier.

    The budget is just what that takes, or ``budget_bytes``. Raises DoesNotFitError where that is less.
    """
    shards = [shard for shard in model.shards if shard.home == "device" and shard.movable_bytes]
    slots = 2 if placement == "stream" else 0
    staging = Staging(slots=slots, slot_bytes=max(map(device_bytes, shards)) if slots else 0)
    ledger = Ledger(
        resident_weight_bytes=sum(map(device_bytes, shards)) if placement == "pin" else 0,
        small_weight_bytes=model.device_weight_bytes - sum(shard.movable_bytes for shard in shards),
        staging_bytes=staging.bytes,
        kv_bytes=model.cache.kv_bytes(CacheContext(context_tokens)),
        state_bytes=model.cache.state_bytes_per_sequence,
        compute_bytes=MIB,
    )
    return Plan(
        model=PlannedModel.of(model),
        device="FAKE0",
        context=PlannedContext(tokens=context_tokens),
        budget_bytes=budget_bytes or ledger.total_bytes,
        ledger=ledger,
        staging=staging,
        shards=tuple(
            PlannedShard(
                name=shard.name,
                bytes=device_bytes(shard),
                tensors=tuple(tensor.name for tensor in shard.tensors if tensor.movable),
            )
            for shard in shards
        ),
        tiers=tuple(
            Tier(
                new_tokens=new_tokens,
                strategy="static",
                placements={shard.name: placement for shard in shards},
            )
            for new_tokens in tiers
        ),
    )


def _attention(layer: int, embedding_width: int, kv_width: int) -> Shard:
    at = f"blk.{layer}."
    return _shard(
        f"{at}attn",
        "attn",
        layer,
        _vector(f"{at}attn_norm.weight", embedding_width),
        _matrix(f"{at}attn_q.weight", embedding_width, embedding_width),
        _matrix(f"{at}attn_k.weight", embedding_width, kv_width),
        _matrix(f"{at}attn_v.weight", embedding_width, kv_width),
        _matrix(f"{at}attn_output.weight", embedding_width, embedding_width),
    )


def _ffn(layer: int, embedding_width: int, ffn_width: int) -> Shard:
    at = f"blk.{layer}."
    return _shard(
        f"{at}ffn",
        "ffn",
        layer,
        _vector(f"{at}ffn_norm.weight", embedding_width),
        _matrix(f"{at}ffn_gate.weight", embedding_width, ffn_width),
        _matrix(f"{at}ffn_up.weight", embedding_width, ffn_width),
        _matrix(f"{at}ffn_down.weight", ffn_width, embedding_width),
    )


def _experts(layer: int, embedding_width: int, ffn_width: int, experts: int, experts_used: int) -> Shard:
    at = f"blk.{layer}."
    return _shard(
        f"{at}experts",
        "experts",
        layer,
        _vector(f"{at}ffn_norm.weight", embedding_width),
        _vector(f"{at}ffn_gate_inp.weight", embedding_width, experts),
        _matrix(f"{at}ffn_gate_exps.weight", embedding_width, ffn_width, experts),
        _matrix(f"{at}ffn_up_exps.weight", embedding_width, ffn_width, experts),
        _matrix(f"{at}ffn_down_exps.weight", ffn_width, embedding_width, experts),
        active_share=experts_used / experts,
    )


def _shard(
    name: str, kind: ShardKind, layer: int | None, *tensors: Tensor, active_share: float = 1.0
) -> Shard:
    moving = [tensor for tensor in tensors if tensor.movable]
    small_bytes = sum(tensor.bytes for tensor in tensors if not tensor.movable)
    return Shard(
        name,
        kind,
        layer,
        tensors,
        flops_per_token=int(2 * active_share * sum(tensor.parameters for tensor in moving)),
        active_bytes=small_bytes + int(active_share * sum(tensor.bytes for tensor in moving)),
    )


def _matrix(name: str, *shape: int) -> Tensor:
    return _tensor(name, "F16", shape, movable=True)


def _vector(name: str, *shape: int) -> Tensor:
    return _tensor(name, "F32", shape, movable=False)


def _tensor(name: str, type_: str, shape: tuple[int, ...], *, movable: bool) -> Tensor:
    return Tensor(name, type_, shape, math.prod(shape) * _TYPE_BYTES[type_], movable)
