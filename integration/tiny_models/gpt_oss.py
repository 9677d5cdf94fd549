"""Mixture of MXFP4 experts with biases, attention sinks and a sliding window."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import (
    EXPERT_WIDTH,
    EXPERTS,
    HEAD_WIDTH,
    HEADS,
    KV_HEADS,
    WIDTH,
    TinyWriter,
    Type,
)

if TYPE_CHECKING:
    from pathlib import Path

WINDOW_TOKENS = 32


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "gpt-oss", tokenizer_from, layers=4)
    model.keys.add_feed_forward_length(EXPERT_WIDTH)
    model.keys.add_head_count_kv(KV_HEADS)
    model.keys.add_key_length(HEAD_WIDTH)
    model.keys.add_value_length(HEAD_WIDTH)
    model.keys.add_sliding_window(WINDOW_TOKENS)
    model.expert_keys()
    model.embeddings()
    for layer in range(model.layers):
        at = f"blk.{layer}."
        model.vector(f"{at}attn_norm.weight", WIDTH)
        model.attention(at, biased=True)
        model.bias(f"{at}attn_output", WIDTH)
        model.vector(f"{at}attn_sinks.weight", HEADS)
        model.vector(f"{at}post_attention_norm.weight", WIDTH)
        model.experts(at, weight_type=Type.MXFP4)
        model.bias(f"{at}ffn_gate_inp", EXPERTS)
        model.bias(f"{at}ffn_gate_exps", EXPERTS, EXPERT_WIDTH)
        model.bias(f"{at}ffn_up_exps", EXPERTS, EXPERT_WIDTH)
        model.bias(f"{at}ffn_down_exps", EXPERTS, WIDTH)
    return model
