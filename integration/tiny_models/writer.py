"""Writes a random model to a GGUF file, with the tokenizer of a real one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import gguf
import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

Type = gguf.GGMLQuantizationType

WIDTH = 256
HEADS = 4
KV_HEADS = 2
HEAD_WIDTH = 64
FFN_WIDTH = 512
EXPERTS = 8
EXPERTS_USED = 2
EXPERT_WIDTH = 256


@dataclass(frozen=True)
class _Key:
    value: Any
    type: gguf.GGUFValueType
    element_type: gguf.GGUFValueType | None


@cache
def _read_tokenizer(path: Path) -> dict[str, _Key]:
    return {
        name: _Key(
            field.contents(),
            field.types[0],
            field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None,
        )
        for name, field in gguf.GGUFReader(path).fields.items()
        if name.startswith("tokenizer.")
    }


class TinyWriter:
    """Names, shape and weights of one model.

    Weights come from a fixed seed; those of matrices are of ``weight_type``.
    """

    def __init__(
        self,
        path: Path,
        architecture: str,
        tokenizer_from: Path,
        *,
        layers: int,
        weight_type: Type = Type.Q8_0,
    ) -> None:
        self.keys = gguf.GGUFWriter(path, architecture)
        self.layers = layers
        self._weight_type = weight_type
        self._random = np.random.default_rng(0)
        self._tokenizer = _read_tokenizer(tokenizer_from)
        self._add_shape()

    def matrix(self, name: str, *shape: int, weight_type: Type | None = None) -> None:
        """Add an operand of a matrix product; ``shape`` ends with the input width."""
        self._add(name, self._normal(*shape), weight_type or self._weight_type)

    def vector(self, name: str, *shape: int, low: float = 0.5, high: float = 1.5) -> None:
        """Add small unquantised weights, such as those of a norm."""
        self.keys.add_tensor(name, self._random.uniform(low, high, shape).astype(np.float32))

    def bias(self, name: str, *shape: int) -> None:
        """Add a bias."""
        self.vector(f"{name}.bias", *shape, low=-0.1, high=0.1)

    def embeddings(self, *, tied: bool = False) -> None:
        """Add token embedding and output head, which are one tensor when ``tied``.

        Greedy answers are plain words: the server refuses one that ends inside a character.
        """
        tokens = self._tokenizer["tokenizer.ggml.tokens"].value
        words = np.array([token.lstrip("\u0120").isascii() and "|" not in token for token in tokens])
        for name in ("token_embd.weight",) if tied else ("token_embd.weight", "output.weight"):
            self._add(name, self._normal(len(tokens), WIDTH) * words[:, None], self._weight_type)
        self.vector("output_norm.weight", WIDTH)

    def attention(self, at: str, *, heads: int = HEADS, biased: bool = False) -> None:
        """Add the four projections of softmax attention; ``heads`` are those of the query."""
        widths = {"q": heads, "k": KV_HEADS, "v": KV_HEADS}
        for part, count in widths.items():
            self.matrix(f"{at}attn_{part}.weight", count * HEAD_WIDTH, WIDTH)
            if biased:
                self.bias(f"{at}attn_{part}", count * HEAD_WIDTH)
        self.matrix(f"{at}attn_output.weight", WIDTH, HEADS * HEAD_WIDTH)

    def ffn(self, at: str) -> None:
        """Add a dense gated FFN."""
        self.matrix(f"{at}ffn_gate.weight", FFN_WIDTH, WIDTH)
        self.matrix(f"{at}ffn_up.weight", FFN_WIDTH, WIDTH)
        self.matrix(f"{at}ffn_down.weight", WIDTH, FFN_WIDTH)

    def experts(self, at: str, *, shared: int = 0, weight_type: Type | None = None) -> None:
        """Add a router, its experts and ``shared`` ones."""
        self.vector(f"{at}ffn_gate_inp.weight", EXPERTS, WIDTH, low=-0.2, high=0.2)
        self.matrix(f"{at}ffn_gate_exps.weight", EXPERTS, EXPERT_WIDTH, WIDTH, weight_type=weight_type)
        self.matrix(f"{at}ffn_up_exps.weight", EXPERTS, EXPERT_WIDTH, WIDTH, weight_type=weight_type)
        self.matrix(f"{at}ffn_down_exps.weight", EXPERTS, WIDTH, EXPERT_WIDTH, weight_type=weight_type)
        if shared:
            self.matrix(f"{at}ffn_gate_shexp.weight", shared * EXPERT_WIDTH, WIDTH)
            self.matrix(f"{at}ffn_up_shexp.weight", shared * EXPERT_WIDTH, WIDTH)
            self.matrix(f"{at}ffn_down_shexp.weight", WIDTH, shared * EXPERT_WIDTH)

    def expert_keys(self, *, shared: int = 0) -> None:
        """Say how many experts there are."""
        self.keys.add_expert_count(EXPERTS)
        self.keys.add_expert_used_count(EXPERTS_USED)
        self.keys.add_expert_feed_forward_length(EXPERT_WIDTH)
        if shared:
            self.keys.add_expert_shared_count(shared)

    def close(self) -> None:
        """Write everything."""
        for name, key in self._tokenizer.items():
            self.keys.add_key_value(name, key.value, key.type, sub_type=key.element_type)
        self.keys.write_header_to_file()
        self.keys.write_kv_data_to_file()
        self.keys.write_tensors_to_file()
        self.keys.close()

    def _normal(self, *shape: int) -> np.ndarray:
        return self._random.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(shape[-1]))

    def _add(self, name: str, values: np.ndarray, weight_type: Type) -> None:
        self.keys.add_tensor(name, gguf.quants.quantize(values, weight_type), raw_dtype=weight_type)

    def _add_shape(self) -> None:
        self.keys.add_context_length(2048)
        self.keys.add_embedding_length(WIDTH)
        self.keys.add_block_count(self.layers)
        self.keys.add_head_count(HEADS)
        self.keys.add_layer_norm_rms_eps(1e-6)
        self.keys.add_rope_freq_base(10000.0)
