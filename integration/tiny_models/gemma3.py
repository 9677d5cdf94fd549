"""Dense: sliding window in every second layer, four norms, output tied to the embedding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import FFN_WIDTH, HEAD_WIDTH, KV_HEADS, WIDTH, TinyWriter

if TYPE_CHECKING:
    from pathlib import Path

WINDOW_TOKENS = 32
PATTERN = 2


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "gemma3", tokenizer_from, layers=4)
    model.keys.add_feed_forward_length(FFN_WIDTH)
    model.keys.add_head_count_kv(KV_HEADS)
    model.keys.add_key_length(HEAD_WIDTH)
    model.keys.add_value_length(HEAD_WIDTH)
    model.keys.add_sliding_window(WINDOW_TOKENS)
    model.keys.add_sliding_window_pattern(PATTERN)
    model.embeddings(tied=True)
    for layer in range(model.layers):
        at = f"blk.{layer}."
        for norm in ("attn_norm", "ffn_norm"):
            model.vector(f"{at}{norm}.weight", WIDTH)
        # The embeddings are scaled up; what the layers add has to count beside them.
        for norm in ("post_attention_norm", "post_ffw_norm"):
            model.vector(f"{at}{norm}.weight", WIDTH, low=8.0, high=24.0)
        model.attention(at)
        model.vector(f"{at}attn_q_norm.weight", HEAD_WIDTH)
        model.vector(f"{at}attn_k_norm.weight", HEAD_WIDTH)
        model.ffn(at)
    return model
