"""Mixture of experts in every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import EXPERT_WIDTH, HEAD_WIDTH, KV_HEADS, WIDTH, TinyWriter

if TYPE_CHECKING:
    from pathlib import Path


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "qwen3moe", tokenizer_from, layers=4)
    model.keys.add_feed_forward_length(EXPERT_WIDTH)
    model.keys.add_head_count_kv(KV_HEADS)
    model.keys.add_key_length(HEAD_WIDTH)
    model.keys.add_value_length(HEAD_WIDTH)
    model.expert_keys()
    model.embeddings()
    for layer in range(model.layers):
        at = f"blk.{layer}."
        model.vector(f"{at}attn_norm.weight", WIDTH)
        model.attention(at)
        model.vector(f"{at}attn_q_norm.weight", HEAD_WIDTH)
        model.vector(f"{at}attn_k_norm.weight", HEAD_WIDTH)
        model.vector(f"{at}ffn_norm.weight", WIDTH)
        model.experts(at)
    return model
