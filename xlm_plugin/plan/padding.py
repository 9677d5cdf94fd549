"""What weights take on a device, which is a little more than in their file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.model.graph import Shard, Tensor

ALIGNMENT_BYTES = 256
# ggml-cuda fills up the last row of a quantised matrix to a multiple of this (MATRIX_ROW_PADDING in b10488).
ROW_ELEMENTS = 512
_NOT_QUANTISED = frozenset({"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8"})


def device_bytes(shard: Shard) -> int:
    """Return the device bytes of the shard's movable tensors, each padded as any device may ask for."""
    return sum(_padded_bytes(tensor) for tensor in shard.tensors if tensor.movable)


def _padded_bytes(tensor: Tensor) -> int:
    size_bytes = tensor.bytes
    if tensor.type.upper() not in _NOT_QUANTISED:
        missing_elements = -tensor.shape[0] % ROW_ELEMENTS
        size_bytes += -(-missing_elements * tensor.bytes // tensor.parameters)
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
