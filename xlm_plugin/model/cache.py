"""What a context costs: KV cells per layer by the architecture's own rule, and state per sequence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"]


@dataclass(frozen=True, slots=True)
class LayerCache:
    """The KV cache of one layer.

    ``key_width`` and ``value_width`` are elements per token (heads x head size); MLA layers hold one
    latent row as the key and no value. ``window_tokens`` is set for sliding-window layers.
    """

    layer: int
    key_width: int
    value_width: int
    window_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class CacheRule:
    """How much memory a context takes.

    ``layers`` lists the layers that own a cache (layers that share another's are left out).
    ``state_conv_bytes`` and ``state_ssm_bytes`` are the recurrent state of one sequence, whatever its length.
    """

    layers: tuple[LayerCache, ...]
    state_conv_bytes: int = 0
    state_ssm_bytes: int = 0

    @property
    def state_bytes_per_sequence(self) -> int:
        """Recurrent state of one sequence."""
        return self.state_conv_bytes + self.state_ssm_bytes
