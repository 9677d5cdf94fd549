"""Hugging Face tensor names to the same roles and shard names as GGUF's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xlm_plugin.model.roles import Role, Stage

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ShardKind

_LAYER = re.compile(r"(?:.*?\.)?(?:layers|h|blocks)\.(?P<layer>\d{1,6})\.(?P<part>.+)")

_VISION = {"visual", "vision_tower", "vision_model", "vision_encoder", "vision", "vit"}
_AUDIO = {"audio_tower", "audio_model", "audio_encoder", "audio"}
_PROJECTOR = {
    "merger",
    "multi_modal_projector",
    "mm_projector",
    "vision_projector",
    "patch_merger",
    "connector",
    "embed_vision",
    "embed_audio",
    "mlp1",
}

_NEXTN = {"eh_proj", "enorm", "hnorm", "shared_head", "embed_tokens"}
_SHARED = {"shared_expert", "shared_experts", "shared_expert_gate", "shared_mlp"}
_ROUTER = {"gate", "router", "wg"}
_STATE = {"linear_attn", "mamba", "ssm", "conv", "in_proj", "out_proj", "conv1d", "x_proj", "dt_proj"}
_STATE |= {"A_log", "D", "dt_bias"}
_ATTENTION = {
    "self_attn",
    "self_attention",
    "attention",
    "attn",
    "cross_attn",
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "laurel",
}
_BEFORE_MIXER = {"input_layernorm", "norm", "ln_1", "attention_norm", "post_attention_norm"}
_ATTENTION_OUTPUT = {"o_proj", "out_proj", "dense", "wo", "c_proj"}

_NOT_A_MATRIX = re.compile(
    r"norm|bias|sinks|embed|wpe|conv1d|\bconv\b|A_log|\bD\b|correction|coef|modality_router|altup"
)


def huggingface_role(name: str, layers: int) -> Role:
    """Return the role of the tensor ``name`` in a model of ``layers`` layers."""
    segments = name.split(".")
    if (
        not _VISION.isdisjoint(segments)
        or not _AUDIO.isdisjoint(segments)
        or not _PROJECTOR.isdisjoint(segments)
    ):
        return _encoder_role(name, segments)
    match = _LAYER.fullmatch(name)
    if "mtp" in segments:
        layer = layers + (int(match["layer"]) if match else 0)
        if match:
            return _layer_role(layer, match["part"])
        return Role(f"blk.{layer}", "mtp", Stage.LAYER, layer, matrix=_is_matrix(name))
    if match:
        return _layer_role(int(match["layer"]), match["part"])
    return _global_role(name, segments)


def _layer_role(layer: int, part: str) -> Role:
    segments = part.split(".")
    # Nemotron-H calls the only sub-layer of each layer its mixer.
    inner = segments[1:] if segments[0] == "mixer" else segments
    kind = _kind(inner)
    router = kind == "experts" and not _ROUTER.isdisjoint(segments)
    return Role(
        f"blk.{layer}",
        kind,
        Stage.LAYER,
        layer,
        matrix=not router and _is_matrix(part),
        lookup=inner[0] == "embed_tokens",
        routed=kind == "experts" and "experts" in segments,
        softmax=kind == "attn" and not _ATTENTION_OUTPUT.isdisjoint(segments),
    )


def _kind(segments: list[str]) -> ShardKind:
    head = segments[0]
    if head in _NEXTN:
        return "mtp"
    if not _SHARED.isdisjoint(segments):
        return "shared_experts"
    if "experts" in segments or "block_sparse_moe" in segments or not _ROUTER.isdisjoint(segments):
        return "experts"
    if head in _STATE:
        return "ssm"
    return "attn" if head in _ATTENTION or head in _BEFORE_MIXER else "ffn"


def _encoder_role(name: str, segments: list[str]) -> Role:
    tower = "audio" if not _AUDIO.isdisjoint(segments) else "vision"
    if not _PROJECTOR.isdisjoint(segments):
        return Role("vision.projector", "vision", Stage.PROJECTOR, matrix=_is_matrix(name))
    match = _LAYER.fullmatch(name)
    if match is None:
        return Role(f"{tower}.embed", "vision", Stage.ENCODER)
    layer, part = int(match["layer"]), match["part"]
    kind = (
        "attn"
        if re.match(r"(?:self_)?attn|attention|norm1|layer_norm1|input_layernorm|ln_1", part)
        else "ffn"
    )
    return Role(f"{tower}.{layer}.{kind}", "vision", Stage.ENCODER, layer, matrix=_is_matrix(part))


def _global_role(name: str, segments: list[str]) -> Role:
    stem = segments[-2] if len(segments) > 1 else name
    if stem in ("embed_tokens", "wte", "word_embeddings", "embeddings", "tok_embeddings"):
        return Role("token_embd", "token_embd", Stage.EMBEDDING, lookup=True)
    if stem == "embed_tokens_per_layer":
        return Role("per_layer_token_embd", "token_embd", Stage.INPUT, lookup=True)
    if stem == "wpe":
        return Role("position_embd", "token_embd", Stage.INPUT, lookup=True)
    if stem.startswith("per_layer_"):
        return Role("per_layer_model_proj", "other", Stage.INPUT, matrix=_is_matrix(name))
    if stem in ("lm_head", "embed_out", "output", "norm", "final_layernorm", "norm_f", "ln_f"):
        return Role("output", "output", Stage.OUTPUT, matrix=_is_matrix(name))
    return Role("other", "other", Stage.INPUT, matrix=_is_matrix(name))


def _is_matrix(name: str) -> bool:
    return _NOT_A_MATRIX.search(name) is None
