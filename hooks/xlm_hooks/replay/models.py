"""The models of the published tables, from their dimensions alone."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_plugin.model.cache import CacheRule, LayerCache
from xlm_plugin.model.graph import ModelGraph, Shape, Shard, ShardKind, Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

_HEAD = 128


def nemo_8b() -> ModelGraph:
    """Return Mistral-NeMo-Minitron-8B in F16: 40 layers, 15.7 GiB."""
    return _transformer(
        "nemo8b", "F16", 16, layers=40, width=4096, heads=32, kv_heads=8, ffn=11520, vocabulary=131072
    )


def qwen3_235b() -> ModelGraph:
    """Return Qwen3-235B-A22B in Q2_K: 94 layers, 77 GB."""
    return _transformer(
        "qwen3-235b-a22b",
        "Q2_K",
        2.625,
        layers=94,
        width=4096,
        heads=64,
        kv_heads=4,
        ffn=1536,
        vocabulary=151936,
        experts=128,
        experts_used=8,
    )


def qwen3_30b() -> ModelGraph:
    """Return Qwen3-30B-A3B in Q4_0."""
    return _transformer(
        "qwen3-30b-a3b",
        "Q4_0",
        4.5,
        layers=48,
        width=2048,
        heads=32,
        kv_heads=4,
        ffn=768,
        vocabulary=151936,
        experts=128,
        experts_used=8,
    )


def llama_8b() -> ModelGraph:
    """Return Llama-3-8B in F16."""
    return _transformer(
        "llama-3-8b", "F16", 16, layers=32, width=4096, heads=32, kv_heads=8, ffn=14336, vocabulary=128256
    )


def llama_70b() -> ModelGraph:
    """Return Llama-2-70B in Q4_0, the type with which it fits the published 48 GB card."""
    return _transformer(
        "llama-2-70b", "Q4_0", 4.5, layers=80, width=8192, heads=64, kv_heads=8, ffn=28672, vocabulary=32000
    )


def random_model(random: Random, layers: int) -> ModelGraph:
    """Return a dense model in F16 whose layers have FFNs of several widths."""
    widths = [random.choice((2048, 4096, 8192, 14336)) for _ in range(layers)]
    return _transformer(
        "random",
        "F16",
        16,
        layers=layers,
        width=random.choice((1024, 2048, 4096)),
        heads=16,
        kv_heads=4,
        ffn=widths[0],
        vocabulary=random.choice((8192, 32768)),
        ffn_widths=widths,
    )


def _transformer(
    name: str,
    type_: str,
    bits: float,
    *,
    layers: int,
    width: int,
    heads: int,
    kv_heads: int,
    ffn: int,
    vocabulary: int,
    experts: int = 0,
    experts_used: int = 0,
    ffn_widths: Sequence[int] = (),
) -> ModelGraph:
    """Return a llama-like model of which all matrices have one type of ``bits`` a weight.

    ``ffn_widths`` are those of each layer where they differ.
    """

    def matrix(called: str, *shape: int) -> Tensor:
        return Tensor(f"{called}.weight", type_, shape, int(prod(shape) * bits / 8), movable=True)

    def small(called: str, *shape: int) -> Tensor:
        return Tensor(f"{called}.weight", "F32", shape, 4 * prod(shape), movable=False)

    def shard(called: str, kind: ShardKind, layer: int | None, *tensors: Tensor, share: float = 1.0) -> Shard:
        moving = [tensor for tensor in tensors if tensor.movable]
        resting_bytes = sum(tensor.bytes for tensor in tensors if not tensor.movable)
        return Shard(
            called,
            kind,
            layer,
            tensors,
            flops_per_token=int(2 * share * sum(tensor.parameters for tensor in moving)),
            active_bytes=resting_bytes + int(share * sum(tensor.bytes for tensor in moving)),
        )

    def attention(layer: int) -> Shard:
        at, query, key = f"blk.{layer}.attn", heads * _HEAD, kv_heads * _HEAD
        return shard(
            at,
            "attn",
            layer,
            small(f"{at}_norm", width),
            matrix(f"{at}_q", width, query),
            matrix(f"{at}_k", width, key),
            matrix(f"{at}_v", width, key),
            matrix(f"{at}_output", query, width),
        )

    def feed_forward(layer: int) -> Shard:
        at = f"blk.{layer}.ffn"
        if not experts:
            inner = ffn_widths[layer] if ffn_widths else ffn
            matrices = (
                matrix(f"{at}_gate", width, inner),
                matrix(f"{at}_up", width, inner),
                matrix(f"{at}_down", inner, width),
            )
            return shard(at, "ffn", layer, small(f"{at}_norm", width), *matrices)
        return shard(
            f"blk.{layer}.experts",
            "experts",
            layer,
            small(f"{at}_norm", width),
            small(f"{at}_gate_inp", width, experts),
            matrix(f"{at}_gate_exps", width, ffn, experts),
            matrix(f"{at}_up_exps", width, ffn, experts),
            matrix(f"{at}_down_exps", ffn, width, experts),
            share=experts_used / experts,
        )

    embedding = matrix("token_embd", width, vocabulary)
    head = shard("output", "output", None, small("output_norm", width), matrix("output", width, vocabulary))
    layered = (each for layer in range(layers) for each in (attention(layer), feed_forward(layer)))
    table = Shard("token_embd", "token_embd", None, (embedding,), 0, embedding.bytes // vocabulary, "host")
    return ModelGraph(
        name=name,
        architecture="qwen3moe" if experts else "llama",
        format="gguf",
        path=Path(f"{name}.gguf"),
        files=(),
        fingerprint=f"published:{name}",
        file_bytes=0,
        shape=Shape(layers, width, ffn, heads, vocabulary, 131072, experts, experts_used),
        shards=(table, *layered, head),
        cache=CacheRule(
            tuple(LayerCache(layer, kv_heads * _HEAD, kv_heads * _HEAD) for layer in range(layers))
        ),
    )
