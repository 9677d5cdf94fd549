"""Dense, F16: fused QKV, gate and up in one matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import (
    FFN_WIDTH,
    HEAD_WIDTH,
    HEADS,
    KV_HEADS,
    WIDTH,
    TinyWriter,
    Type,
)

if TYPE_CHECKING:
    from pathlib import Path


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "phi3", tokenizer_from, layers=4, weight_type=Type.F16)
    model.keys.add_feed_forward_length(FFN_WIDTH)
    model.keys.add_head_count_kv(KV_HEADS)
    model.keys.add_rope_dimension_count(HEAD_WIDTH)
    model.embeddings()
    for layer in range(model.layers):
        at = f"blk.{layer}."
        model.vector(f"{at}attn_norm.weight", WIDTH)
        model.matrix(f"{at}attn_qkv.weight", (HEADS + 2 * KV_HEADS) * HEAD_WIDTH, WIDTH)
        model.matrix(f"{at}attn_output.weight", WIDTH, HEADS * HEAD_WIDTH)
        model.vector(f"{at}ffn_norm.weight", WIDTH)
        model.matrix(f"{at}ffn_up.weight", 2 * FFN_WIDTH, WIDTH)
        model.matrix(f"{at}ffn_down.weight", WIDTH, FFN_WIDTH)
    return model
