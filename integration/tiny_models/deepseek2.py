"""Multi-head latent attention; a leading dense layer, then experts with shared ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import FFN_WIDTH, HEADS, WIDTH, TinyWriter

if TYPE_CHECKING:
    from pathlib import Path

Q_RANK = 128
KV_RANK = 128
PLAIN_WIDTH = 64
ROTATED_WIDTH = 32
VALUE_WIDTH = 64
SHARED_EXPERTS = 1
DENSE_LAYERS = 1


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "deepseek2", tokenizer_from, layers=4)
    model.keys.add_feed_forward_length(FFN_WIDTH)
    model.keys.add_head_count_kv(1)
    model.keys.add_q_lora_rank(Q_RANK)
    model.keys.add_kv_lora_rank(KV_RANK)
    model.keys.add_key_length(KV_RANK + ROTATED_WIDTH)
    model.keys.add_value_length(KV_RANK)
    model.keys.add_key_length_mla(PLAIN_WIDTH + ROTATED_WIDTH)
    model.keys.add_value_length_mla(VALUE_WIDTH)
    model.keys.add_rope_dimension_count(ROTATED_WIDTH)
    model.keys.add_leading_dense_block_count(DENSE_LAYERS)
    model.expert_keys(shared=SHARED_EXPERTS)
    model.embeddings()
    for layer in range(model.layers):
        at = f"blk.{layer}."
        _add_attention(model, at)
        model.vector(f"{at}ffn_norm.weight", WIDTH)
        if layer < DENSE_LAYERS:
            model.ffn(at)
        else:
            model.experts(at, shared=SHARED_EXPERTS)
    return model


def _add_attention(model: TinyWriter, at: str) -> None:
    model.vector(f"{at}attn_norm.weight", WIDTH)
    model.matrix(f"{at}attn_q_a.weight", Q_RANK, WIDTH)
    model.vector(f"{at}attn_q_a_norm.weight", Q_RANK)
    model.matrix(f"{at}attn_q_b.weight", HEADS * (PLAIN_WIDTH + ROTATED_WIDTH), Q_RANK)
    model.matrix(f"{at}attn_kv_a_mqa.weight", KV_RANK + ROTATED_WIDTH, WIDTH)
    model.vector(f"{at}attn_kv_a_norm.weight", KV_RANK)
    model.matrix(f"{at}attn_k_b.weight", HEADS, KV_RANK, PLAIN_WIDTH)
    model.matrix(f"{at}attn_v_b.weight", HEADS, VALUE_WIDTH, KV_RANK)
    model.matrix(f"{at}attn_output.weight", WIDTH, HEADS * VALUE_WIDTH)
