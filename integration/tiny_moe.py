"""A random mixture-of-experts model, small enough to be made by a test, with a real tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gguf
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

ARCHITECTURE = "qwen3moe"
LAYERS = 4
EXPERTS = 8
EXPERTS_USED = 2
WIDTH = 256
EXPERT_WIDTH = 256
HEADS = 4
KV_HEADS = 2
HEAD_WIDTH = 64


def write_tiny_moe(path: Path, tokenizer_from: Path) -> None:
    """Write the model to ``path`` with the tokenizer of the GGUF file ``tokenizer_from``."""
    source = gguf.GGUFReader(tokenizer_from)
    vocabulary = len(source.fields["tokenizer.ggml.tokens"].contents())
    part = path.with_suffix(".part")
    writer = gguf.GGUFWriter(part, ARCHITECTURE)
    _add_shape(writer)
    _copy_tokenizer(writer, source)
    _add_weights(writer, vocabulary)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)


def _add_shape(writer: gguf.GGUFWriter) -> None:
    writer.add_name("tiny random MoE")
    writer.add_context_length(2048)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(EXPERT_WIDTH)
    writer.add_expert_feed_forward_length(EXPERT_WIDTH)
    writer.add_expert_count(EXPERTS)
    writer.add_expert_used_count(EXPERTS_USED)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_WIDTH)
    writer.add_value_length(HEAD_WIDTH)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(10000.0)


def _copy_tokenizer(writer: gguf.GGUFWriter, source: gguf.GGUFReader) -> None:
    for name, field in source.fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[0]
            element = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), kind, sub_type=element)


def _add_weights(writer: gguf.GGUFWriter, vocabulary: int) -> None:
    random = np.random.default_rng(0)

    def matrix(name: str, *shape: int) -> None:
        values = random.standard_normal(shape, dtype=np.float32) / np.sqrt(shape[-1])
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(name, gguf.quants.quantize(values, kind), raw_dtype=kind)

    def vector(name: str, *shape: int) -> None:
        writer.add_tensor(name, random.uniform(0.5, 1.5, shape).astype(np.float32))

    matrix("token_embd.weight", vocabulary, WIDTH)
    vector("output_norm.weight", WIDTH)
    matrix("output.weight", vocabulary, WIDTH)
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        vector(f"{at}attn_norm.weight", WIDTH)
        matrix(f"{at}attn_q.weight", HEADS * HEAD_WIDTH, WIDTH)
        matrix(f"{at}attn_k.weight", KV_HEADS * HEAD_WIDTH, WIDTH)
        matrix(f"{at}attn_v.weight", KV_HEADS * HEAD_WIDTH, WIDTH)
        matrix(f"{at}attn_output.weight", WIDTH, HEADS * HEAD_WIDTH)
        vector(f"{at}attn_q_norm.weight", HEAD_WIDTH)
        vector(f"{at}attn_k_norm.weight", HEAD_WIDTH)
        vector(f"{at}ffn_norm.weight", WIDTH)
        vector(f"{at}ffn_gate_inp.weight", EXPERTS, WIDTH)
        matrix(f"{at}ffn_gate_exps.weight", EXPERTS, EXPERT_WIDTH, WIDTH)
        matrix(f"{at}ffn_up_exps.weight", EXPERTS, EXPERT_WIDTH, WIDTH)
        matrix(f"{at}ffn_down_exps.weight", EXPERTS, WIDTH, EXPERT_WIDTH)
