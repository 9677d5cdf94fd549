"""Hybrid: three layers of gated delta-net linear attention, then one of gated softmax attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import FFN_WIDTH, HEAD_WIDTH, HEADS, KV_HEADS, WIDTH, TinyWriter

if TYPE_CHECKING:
    from pathlib import Path

INTERVAL = 4
CONVOLUTION_TOKENS = 4
STATE_WIDTH = 64
KEY_HEADS = 2
VALUE_HEADS = 4
VALUE_WIDTH = VALUE_HEADS * STATE_WIDTH
MIXED_WIDTH = 2 * KEY_HEADS * STATE_WIDTH + VALUE_WIDTH


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "qwen35", tokenizer_from, layers=4)
    model.keys.add_feed_forward_length(FFN_WIDTH)
    model.keys.add_head_count_kv(KV_HEADS)
    model.keys.add_key_length(HEAD_WIDTH)
    model.keys.add_value_length(HEAD_WIDTH)
    model.keys.add_rope_dimension_count(HEAD_WIDTH)
    model.keys.add_rope_dimension_sections([16, 8, 8, 0])
    model.keys.add_full_attention_interval(INTERVAL)
    model.keys.add_ssm_conv_kernel(CONVOLUTION_TOKENS)
    model.keys.add_ssm_inner_size(VALUE_WIDTH)
    model.keys.add_ssm_state_size(STATE_WIDTH)
    model.keys.add_ssm_time_step_rank(VALUE_HEADS)
    model.keys.add_ssm_group_count(KEY_HEADS)
    model.embeddings()
    for layer in range(model.layers):
        at = f"blk.{layer}."
        model.vector(f"{at}attn_norm.weight", WIDTH)
        model.vector(f"{at}post_attention_norm.weight", WIDTH)
        if (layer + 1) % INTERVAL:
            _add_linear_attention(model, at)
        else:
            # The query comes with a gate of its own width.
            model.attention(at, heads=2 * HEADS)
            model.vector(f"{at}attn_q_norm.weight", HEAD_WIDTH)
            model.vector(f"{at}attn_k_norm.weight", HEAD_WIDTH)
        model.ffn(at)
    return model


def _add_linear_attention(model: TinyWriter, at: str) -> None:
    model.matrix(f"{at}attn_qkv.weight", MIXED_WIDTH, WIDTH)
    model.matrix(f"{at}attn_gate.weight", VALUE_WIDTH, WIDTH)
    model.vector(f"{at}ssm_conv1d.weight", MIXED_WIDTH, CONVOLUTION_TOKENS, low=-0.5, high=0.5)
    model.bias(f"{at}ssm_dt", VALUE_HEADS)
    model.vector(f"{at}ssm_a", VALUE_HEADS, low=-1.0, high=-0.1)
    model.matrix(f"{at}ssm_beta.weight", VALUE_HEADS, WIDTH)
    model.matrix(f"{at}ssm_alpha.weight", VALUE_HEADS, WIDTH)
    model.vector(f"{at}ssm_norm.weight", STATE_WIDTH)
    model.matrix(f"{at}ssm_out.weight", WIDTH, VALUE_WIDTH)
