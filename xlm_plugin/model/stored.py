"""What a model's files say: metadata under GGUF's key names, and the tensor table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Scalar = int | float | bool | str
Value = Scalar | tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A row of the tensor table. ``shape`` has the row length first."""

    name: str
    type: str
    shape: tuple[int, ...]
    bytes: int


@dataclass(frozen=True)
class StoredModel:
    """All files of one model. ``metadata`` lacks long arrays and texts, such as a tokenizer's.

    ``file_bytes`` is what the files take on disk, ``path`` is the first file or the folder.
    """

    name: str
    format: Literal["gguf", "huggingface"]
    path: Path
    files: tuple[Path, ...]
    file_bytes: int
    metadata: Mapping[str, Value]
    tensors: tuple[StoredTensor, ...]
