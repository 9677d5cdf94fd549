"""Small models to change one thing of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .described import Described

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .described import TensorRow


def tiny(
    architecture: str = "llama",
    *,
    layers: int = 2,
    extra: Iterable[TensorRow] = (),
    **hyperparameters: object,
) -> Described:
    """A model with 4 heads of 16, 2 of them for keys and values; ``__`` in a keyword is a dot in the key."""
    rows: list[TensorRow] = [("token_embd.weight", (64, 256), "F32"), ("output_norm.weight", (64,), "F32")]
    for layer in range(layers):
        matrices = {
            "attn_q": (64, 64),
            "attn_k": (64, 32),
            "attn_v": (64, 32),
            "attn_output": (64, 64),
            "ffn_gate": (64, 128),
            "ffn_up": (64, 128),
            "ffn_down": (128, 64),
        }
        rows += [(f"blk.{layer}.{name}.weight", shape, "F32") for name, shape in matrices.items()]
        rows += [(f"blk.{layer}.{name}.weight", (64,), "F32") for name in ("attn_norm", "ffn_norm")]
    own = {
        "block_count": layers,
        "embedding_length": 64,
        "context_length": 512,
        "feed_forward_length": 128,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
        **{key.replace("__", "."): value for key, value in hyperparameters.items()},
    }
    metadata = {f"{architecture}.{key}": value for key, value in own.items() if value is not None}
    rows += [("output.weight", (64, 256), "F32"), *extra]
    return Described({"general.architecture": architecture, **metadata}, tuple(rows))
