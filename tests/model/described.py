"""Model files without a body: a real GGUF header over a sparse file, from a tensor table."""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFEndian, GGUFValueType, GGUFWriter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

TensorRow = tuple[str, tuple[int, ...], str]
"""Name, shape with the row length first, and ggml type name such as ``"Q8_0"``."""

_ALIGNMENT = 32


@dataclass(frozen=True)
class Described:
    """A model as metadata: what a GGUF header holds."""

    hyperparameters: Mapping[str, object]
    tensors: tuple[TensorRow, ...]

    @property
    def parameters(self) -> int:
        """Number of weights in the table."""
        return sum(prod(shape) for _, shape, _ in self.tensors)

    @property
    def tensor_bytes(self) -> int:
        """Bytes of all tensors, without header and padding."""
        return sum(row_bytes(row) for row in self.tensors)

    def write(self, path: Path, files: int = 1) -> Path:
        """Write the model below ``path`` and return its first file."""
        return write_described_gguf(path, self.hyperparameters, self.tensors, files=files)[0]


def row_bytes(row: TensorRow) -> int:
    """Return the bytes of one tensor as ggml lays it out."""
    _, shape, type_name = row
    block_elements, block_bytes = GGML_QUANT_SIZES[GGMLQuantizationType[type_name]]
    return prod(shape) // block_elements * block_bytes


def write_described_gguf(
    path: Path,
    hyperparameters: Mapping[str, object],
    tensors: Iterable[TensorRow],
    *,
    files: int = 1,
    endianess: GGUFEndian = GGUFEndian.LITTLE,
) -> list[Path]:
    """Write a GGUF (or ``files`` shards of one) whose body is a hole, and return the paths.

    Integers become uint32, floats float32; ``general.architecture`` is required.
    """
    rows = list(tensors)
    writer = GGUFWriter(
        path,
        str(hyperparameters["general.architecture"]),
        endianess=endianess,
        split_max_tensors=ceil(len(rows) / files) if files > 1 else 0,
    )
    for key, value in hyperparameters.items():
        if key != "general.architecture":
            writer.add_key_value(key, value, *_value_types(value))
    for name, shape, type_name in rows:
        writer.add_tensor_info(
            name,
            tuple(reversed(shape)),
            np.dtype(np.float32),
            row_bytes((name, shape, type_name)),
            raw_dtype=GGMLQuantizationType[type_name],
        )
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    paths = writer.format_shard_names(path)
    for shard_path, table in zip(paths, writer.tensors, strict=True):
        body_bytes = sum(_padded(info.nbytes) for info in table.values())
        os.truncate(shard_path, _padded(shard_path.stat().st_size) + body_bytes)
    return paths


def _value_types(value: object) -> tuple[GGUFValueType, GGUFValueType | None]:
    if isinstance(value, list):
        return GGUFValueType.ARRAY, _value_types(value[0])[0]
    if isinstance(value, bool):
        return GGUFValueType.BOOL, None
    if isinstance(value, int):
        return GGUFValueType.UINT32, None
    return (GGUFValueType.FLOAT32 if isinstance(value, float) else GGUFValueType.STRING), None


def _padded(size_bytes: int) -> int:
    return ceil(size_bytes / _ALIGNMENT) * _ALIGNMENT
