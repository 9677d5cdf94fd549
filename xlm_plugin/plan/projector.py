"""What a vision tower takes: weights for good, and activations while an image is encoded."""

from __future__ import annotations

from dataclasses import dataclass

_FLOAT = 4
# Rows of the tower's width beside a layer's own: residual, norm, queries, keys, values and the result.
_LIVE_ROWS = 6


@dataclass(frozen=True, slots=True)
class Projector:
    """A vision tower (llama.cpp's ``mmproj``).

    Widths are in elements. ``patches_per_token`` is how many patches are merged into one image token.
    """

    weight_bytes: int
    width: int = 0
    ffn_width: int = 0
    head_count: int = 0
    patches_per_token: int = 4

    def encode_bytes(self, image_tokens: int, *, flash_attention: bool = True) -> int:
        """Return what encoding an image of ``image_tokens`` takes while it lasts.

        Without flash attention the scores of all patches with all others lie in memory: heads x patches
        squared floats. That is what grows with the resolution, so the tokens of an image need a cap.
        """
        patches = image_tokens * self.patches_per_token
        activations = patches * (_LIVE_ROWS * self.width + 2 * self.ffn_width)
        scores = 0 if flash_attention else self.head_count * patches**2
        return _FLOAT * (activations + scores)
