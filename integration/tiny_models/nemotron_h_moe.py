"""Hybrid: each layer is Mamba-2, softmax attention or ungated experts of a latent width alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models.writer import EXPERT_WIDTH, EXPERTS, HEAD_WIDTH, KV_HEADS, WIDTH, TinyWriter

if TYPE_CHECKING:
    from pathlib import Path

LAYERS = ("ssm", "experts", "ssm", "attn", "ssm", "experts")
LATENT_WIDTH = 128
CONVOLUTION_TOKENS = 4
INNER_WIDTH = 512
STATE_WIDTH = 32
SSM_HEADS = 8
GROUPS = 2
MIXED_WIDTH = INNER_WIDTH + 2 * GROUPS * STATE_WIDTH


def fill(path: Path, tokenizer_from: Path) -> TinyWriter:
    """Return the model, ready to be written to ``path``."""
    model = TinyWriter(path, "nemotron_h_moe", tokenizer_from, layers=len(LAYERS))
    model.keys.add_feed_forward_length([EXPERT_WIDTH * (kind == "experts") for kind in LAYERS])
    model.keys.add_head_count_kv([KV_HEADS * (kind == "attn") for kind in LAYERS])
    model.keys.add_layer_norm_eps(1e-6)
    model.keys.add_key_length(HEAD_WIDTH)
    model.keys.add_value_length(HEAD_WIDTH)
    model.keys.add_ssm_conv_kernel(CONVOLUTION_TOKENS)
    model.keys.add_ssm_inner_size(INNER_WIDTH)
    model.keys.add_ssm_state_size(STATE_WIDTH)
    model.keys.add_ssm_time_step_rank(SSM_HEADS)
    model.keys.add_ssm_group_count(GROUPS)
    model.keys.add_moe_latent_size(LATENT_WIDTH)
    model.keys.add_expert_shared_feed_forward_length(EXPERT_WIDTH)
    model.expert_keys(shared=1)
    model.embeddings()
    for layer, kind in enumerate(LAYERS):
        at = f"blk.{layer}."
        model.vector(f"{at}attn_norm.weight", WIDTH)
        if kind == "ssm":
            _add_mamba(model, at)
        elif kind == "attn":
            model.attention(at)
        else:
            _add_experts(model, at)
    return model


def _add_experts(model: TinyWriter, at: str) -> None:
    model.vector(f"{at}ffn_gate_inp.weight", EXPERTS, WIDTH, low=-0.2, high=0.2)
    model.bias(f"{at}exp_probs_b", EXPERTS)
    model.matrix(f"{at}ffn_latent_down.weight", LATENT_WIDTH, WIDTH)
    model.matrix(f"{at}ffn_up_exps.weight", EXPERTS, EXPERT_WIDTH, LATENT_WIDTH)
    model.matrix(f"{at}ffn_down_exps.weight", EXPERTS, LATENT_WIDTH, EXPERT_WIDTH)
    model.matrix(f"{at}ffn_latent_up.weight", WIDTH, LATENT_WIDTH)
    model.matrix(f"{at}ffn_up_shexp.weight", EXPERT_WIDTH, WIDTH)
    model.matrix(f"{at}ffn_down_shexp.weight", WIDTH, EXPERT_WIDTH)


def _add_mamba(model: TinyWriter, at: str) -> None:
    model.matrix(f"{at}ssm_in.weight", INNER_WIDTH + MIXED_WIDTH + SSM_HEADS, WIDTH)
    model.vector(f"{at}ssm_conv1d.weight", MIXED_WIDTH, CONVOLUTION_TOKENS, low=-0.5, high=0.5)
    model.bias(f"{at}ssm_conv1d", MIXED_WIDTH)
    model.bias(f"{at}ssm_dt", SSM_HEADS)
    model.vector(f"{at}ssm_a", SSM_HEADS, 1, low=-1.0, high=-0.1)
    model.vector(f"{at}ssm_d", SSM_HEADS, 1)
    model.vector(f"{at}ssm_norm.weight", GROUPS, INNER_WIDTH // GROUPS)
    model.matrix(f"{at}ssm_out.weight", WIDTH, INNER_WIDTH)
