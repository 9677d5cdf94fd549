"""A leading dense layer, then experts with a shared one, and biases on Q, K and V."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import (
    EXPERTS,
    FFN_WIDTH,
    HEAD_WIDTH,
    KV_HEADS,
    WIDTH,
    TinyWriter,
)

if TYPE_CHECKING:
    from pathlib import Path

SHARED_EXPERTS = 1
DENSE_LAYERS = 1


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "glm4moe", tokenizer_from, layers=4)
    model.keys.add_feed_forward_length(FFN_WIDTH)
    model.keys.add_head_count_kv(KV_HEADS)
    model.keys.add_key_length(HEAD_WIDTH)
    model.keys.add_value_length(HEAD_WIDTH)
    model.keys.add_rope_dimension_count(HEAD_WIDTH // 2)
    model.keys.add_leading_dense_block_count(DENSE_LAYERS)
    model.expert_keys(shared=SHARED_EXPERTS)
    model.embeddings()
    for layer in range(model.layers):
        at = f"blk.{layer}."
        model.vector(f"{at}attn_norm.weight", WIDTH)
        model.attention(at, biased=True)
        model.vector(f"{at}post_attention_norm.weight", WIDTH)
        if layer < DENSE_LAYERS:
            model.ffn(at)
        else:
            model.experts(at, shared=SHARED_EXPERTS)
            model.bias(f"{at}exp_probs_b", EXPERTS)
    return model
