"""GGUF tensor names to roles (names: ``gguf.constants.TENSOR_NAMES``, ops: ``llama-arch.cpp``)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xlm_plugin.model.roles import Role, Stage

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ShardKind

_LAYER = re.compile(r"blk\.(?P<layer>\d{1,6})\.(?P<part>.+)")
_ENCODER_LAYER = re.compile(r"(?P<tower>[va])\.(?:\w+\.)?blk\.(?P<layer>\d{1,6})\.(?P<part>.+)")
_ENCODER_ATTENTION = re.compile(r"attn|ln1|ls1|linear_pos|pos_bias|per_dim")

_ROUTED = re.compile(r"ffn_\w+_(?:ch)?exps\b|ffn_(?:gate|up|down)\.\d")
# The first match decides.
_KINDS: tuple[tuple[re.Pattern[str], ShardKind], ...] = (
    (re.compile(r"nextn\."), "mtp"),
    (re.compile(r"ffn_\w+_shexp\b"), "shared_experts"),
    (_ROUTED, "experts"),
    (re.compile(r"ffn_gate_(?:inp|tid2eid)|exp_probs_b|ffn_(?:latent|routed)_"), "experts"),
    (re.compile(r"ssm_|shortconv|time_mix"), "ssm"),
    (re.compile(r"(?:cross_|vis_|hc_)?attn|post_attention|indexer|laurel"), "attn"),
    (
        re.compile(r"(?:hc_)?ffn|(?:pre|post)_ffw|channel_mix|inp_gate|proj\b|post_norm|layer_output|altup"),
        "ffn",
    ),
)
_NOT_A_MATRIX = re.compile(
    r"norm|gate_inp|conv1d|\bconv\b|conv_|altup|rel_b|_ape\b|tid2eid"
    r"|embed_tokens|embd|embedding|lerp|time_mix_(?:first|decay\b|k_k|k_a|r_k|ln)|sinks|res_score"
)
_INPUT_TABLES = ("token_embd", "position_embd", "token_types", "per_layer_token_embd")
_FIRST_LAYER = ("token_embd_norm", "rope_freqs", "rope_factors_long", "rope_factors_short")


def gguf_role(name: str) -> Role:
    """Return the role of the tensor ``name``."""
    if match := _LAYER.fullmatch(name):
        return _layer_role(int(match["layer"]), match["part"])
    if match := _ENCODER_LAYER.fullmatch(name):
        return _encoder_role(match["tower"], int(match["layer"]), match["part"])
    stem = name.rsplit(".", 1)[0]
    if stem in _INPUT_TABLES:
        stage = Stage.EMBEDDING if stem == "token_embd" else Stage.INPUT
        return Role(stem, "token_embd", stage, lookup=True)
    if stem in _FIRST_LAYER:
        return Role("blk.0", "attn", Stage.LAYER, 0)
    if name.startswith(("v.", "a.")):
        return Role("vision.embed" if name[0] == "v" else "audio.embed", "vision", Stage.ENCODER)
    block, kind, stage = _outside_layers(name)
    return Role(block, kind, stage, matrix=_is_matrix(name))


def _layer_role(layer: int, part: str) -> Role:
    return Role(
        f"blk.{layer}",
        next((kind for pattern, kind in _KINDS if pattern.match(part)), "other"),
        Stage.LAYER,
        layer,
        matrix=_is_matrix(part),
        lookup=part == "nextn.embed_tokens.weight",
        routed=_ROUTED.match(part) is not None,
        softmax=part in ("attn_output.weight", "attn_output_a.weight"),
    )


def _encoder_role(tower: str, layer: int, part: str) -> Role:
    kind = "attn" if _ENCODER_ATTENTION.match(part) else "ffn"
    block = f"{'vision' if tower == 'v' else 'audio'}.{layer}.{kind}"
    return Role(block, "vision", Stage.ENCODER, layer, matrix=_is_matrix(part))


def _outside_layers(name: str) -> tuple[str, ShardKind, Stage]:
    if name.startswith(("mm.", "resampler.")):
        return "vision.projector", "vision", Stage.PROJECTOR
    if name.startswith("altup_"):
        return "altup", "other", Stage.INPUT
    if name.startswith("per_layer_"):
        return "per_layer_model_proj", "other", Stage.INPUT
    if name.startswith("output"):
        return "output", "output", Stage.OUTPUT
    if name.startswith(("cls", "dense_")):
        return "classifier", "other", Stage.OUTPUT
    return "other", "other", Stage.INPUT


def _is_matrix(part: str) -> bool:
    return part.endswith(".weight") and _NOT_A_MATRIX.search(part) is None
