"""Dense, Q4_0: separate projections, gated FFN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import FFN_WIDTH, KV_HEADS, WIDTH, TinyWriter, Type

if TYPE_CHECKING:
    from pathlib import Path


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "llama", tokenizer_from, layers=5, weight_type=Type.Q4_0)
    model.keys.add_feed_forward_length(FFN_WIDTH)
    model.keys.add_head_count_kv(KV_HEADS)
    model.embeddings()
    for layer in range(model.layers):
        at = f"blk.{layer}."
        model.vector(f"{at}attn_norm.weight", WIDTH)
        model.attention(at)
        model.vector(f"{at}ffn_norm.weight", WIDTH)
        model.ffn(at)
    return model
