"""The header of one GGUF file: metadata and tensor table, never the weights.

``gguf.GGUFReader`` makes numpy views of every element of every array: on a 77 GB file with a tokenizer
of 150,000 entries it takes 10 s and 520 MB, and it trusts the counts in the file. This parser knows the
same layout (version 3 of github.com/ggml-org/ggml/blob/master/docs/gguf.md) and takes constants, types
and block sizes from that package, but skips arrays that planning does not need and believes no count
that the file is too short for.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NoReturn

from gguf.constants import (
    GGML_QUANT_SIZES,
    GGUF_DEFAULT_ALIGNMENT,
    GGUF_MAGIC,
    GGUF_VERSION,
    GGMLQuantizationType,
    GGUFValueType,
)

from xlm_plugin.errors import ModelError
from xlm_plugin.model.regular_file import open_regular
from xlm_plugin.model.stored import StoredTensor
from xlm_plugin.units import MIB, format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from xlm_plugin.model.stored import Scalar, Value

_OLDEST_VERSION = 2
# Far above any model, and low enough that a damaged file is refused in seconds.
_MAX_HEADER_BYTES = 256 * MIB
_MAX_KEYS = 1 << 16
_MAX_TENSORS = 1 << 18
_MAX_STRINGS = 1 << 22
_MAX_NAME_BYTES = 1 << 16
_MAX_KEPT_ELEMENTS = 4096
_MAX_DIMENSIONS = 4

_SCALARS = {
    GGUFValueType.UINT8: struct.Struct("<B"),
    GGUFValueType.INT8: struct.Struct("<b"),
    GGUFValueType.UINT16: struct.Struct("<H"),
    GGUFValueType.INT16: struct.Struct("<h"),
    GGUFValueType.UINT32: struct.Struct("<I"),
    GGUFValueType.INT32: struct.Struct("<i"),
    GGUFValueType.UINT64: struct.Struct("<Q"),
    GGUFValueType.INT64: struct.Struct("<q"),
    GGUFValueType.FLOAT32: struct.Struct("<f"),
    GGUFValueType.FLOAT64: struct.Struct("<d"),
    GGUFValueType.BOOL: struct.Struct("<?"),
}
_UINT32 = _SCALARS[GGUFValueType.UINT32]
_UINT64 = _SCALARS[GGUFValueType.UINT64]

# The least bytes that an entry takes: an empty name with its length, and its fixed fields.
_MIN_KEY_BYTES = 8 + 4 + 1
_MIN_TENSOR_BYTES = 8 + 4 + 4 + 8


@dataclass(frozen=True)
class GGUFHeader:
    """What one file says. Arrays of strings and long arrays are left out of ``metadata``."""

    metadata: Mapping[str, Value]
    tensors: tuple[StoredTensor, ...]
    file_bytes: int


def read_header(path: Path) -> GGUFHeader:
    """Return the header of the GGUF file ``path``.

    Raises ModelError where it is no GGUF file of a known version, or is shorter than it says.
    """
    with open_regular(path) as (stream, size):
        try:
            view = mmap.mmap(stream.fileno(), min(size, _MAX_HEADER_BYTES), access=mmap.ACCESS_READ)
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from None
        with view:
            return _HeaderParser(path, view, size).parse()


class _HeaderParser:
    def __init__(self, path: Path, view: mmap.mmap, file_bytes: int) -> None:
        self._path = path
        self._view = view
        self._file_bytes = file_bytes
        self._offset = 0

    def parse(self) -> GGUFHeader:
        self._check_magic()
        self._check_version()
        tensor_count = self._count("tensors", _MAX_TENSORS)
        key_count = self._count("keys", _MAX_KEYS)
        self._check_room(key_count * _MIN_KEY_BYTES + tensor_count * _MIN_TENSOR_BYTES)
        metadata = self._metadata(key_count)
        rows = [self._tensor() for _ in range(tensor_count)]
        if len({tensor.name for tensor, _ in rows}) != len(rows):
            self._refuse("names a tensor twice")
        self._check_body(_alignment(self._path, metadata), rows)
        return GGUFHeader(metadata, tuple(tensor for tensor, _ in rows), self._file_bytes)

    def _check_magic(self) -> None:
        if self._view[:4] != _UINT32.pack(GGUF_MAGIC)[: len(self._view)]:
            raise ModelError(
                f"{self._path} is not a GGUF file.", "Name a .gguf file or a Hugging Face folder."
            )
        self._offset = 4

    def _check_version(self) -> None:
        version = self._u32()
        if _OLDEST_VERSION <= version <= GGUF_VERSION:
            return
        if _OLDEST_VERSION <= int.from_bytes(version.to_bytes(4, "little"), "big") <= GGUF_VERSION:
            self._refuse("is a big-endian GGUF file", "Convert it with gguf_convert_endian.py of llama.cpp.")
        self._refuse(
            f"is of GGUF version {version}; versions {_OLDEST_VERSION} to {GGUF_VERSION} can be read",
            "Convert the model again with a llama.cpp of today.",
        )

    def _metadata(self, count: int) -> dict[str, Value]:
        metadata: dict[str, Value] = {}
        seen = set()
        for _ in range(count):
            key = self._name()
            if key in seen:
                self._refuse(f"has the key '{key}' twice")
            seen.add(key)
            value = self._value(self._value_type())
            if value is not None:
                metadata[key] = value
        return metadata

    def _tensor(self) -> tuple[StoredTensor, int]:
        name = self._name()
        dimensions = self._u32()
        if dimensions > _MAX_DIMENSIONS:
            self._refuse(f"gives tensor '{name}' {dimensions} dimensions; {_MAX_DIMENSIONS} is the most")
        shape = tuple(self._u64() for _ in range(dimensions)) or (1,)
        type_number = self._u32()
        offset = self._u64()
        try:
            type_ = GGMLQuantizationType(type_number)
        except ValueError:
            self._refuse(f"gives tensor '{name}' the type {type_number}, which is not known")
        block_elements, block_bytes = GGML_QUANT_SIZES[type_]
        if 0 in shape or shape[0] % block_elements:
            self._refuse(f"gives tensor '{name}' the shape {list(shape)}, which {type_.name} cannot have")
        return StoredTensor(name, type_.name, shape, prod(shape) // block_elements * block_bytes), offset

    def _check_body(self, alignment: int, rows: list[tuple[StoredTensor, int]]) -> None:
        start = -(-self._offset // alignment) * alignment
        end = max((start + offset + tensor.bytes for tensor, offset in rows), default=0)
        if end > self._file_bytes:
            self._truncated(end)

    def _value(self, type_: GGUFValueType) -> Value | None:
        if type_ is GGUFValueType.STRING:
            length = self._length()
            text = self._take(length)
            return text.decode("utf-8", errors="replace") if text is not None else None
        if type_ is GGUFValueType.ARRAY:
            return self._array()
        return self._scalar(_SCALARS[type_])

    def _array(self) -> Value | None:
        type_ = self._value_type()
        if type_ is GGUFValueType.STRING:
            self._skip_strings(self._count("strings in a list", _MAX_STRINGS))
            return None
        count = self._u64()
        if type_ is GGUFValueType.ARRAY:
            self._refuse("has an array of arrays, which is not supported")
        layout = _SCALARS[type_]
        self._check_room(count * layout.size)
        if count > _MAX_KEPT_ELEMENTS:
            self._offset += count * layout.size
            return None
        return tuple(self._scalar(layout) for _ in range(count))

    def _skip_strings(self, count: int) -> None:
        self._check_room(count * 8)
        view, offset, unpack = self._view, self._offset, _UINT64.unpack_from
        try:
            for _ in range(count):
                offset += 8 + unpack(view, offset)[0]
        except (struct.error, OverflowError):
            self._truncated()
        self._offset = offset
        self._check_room(0)

    def _count(self, of_what: str, most: int) -> int:
        count = self._u64()
        if count > most:
            self._refuse(f"is damaged: it says that it has {count} {of_what}")
        return count

    def _name(self) -> str:
        length = self._length()
        text = self._take(length)
        if text is None:
            self._refuse(f"has a name of {length} bytes")
        try:
            return text.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse("has a name that is not UTF-8")

    def _length(self) -> int:
        length = self._u64()
        self._check_room(length)
        return length

    def _take(self, length: int) -> bytes | None:
        """Return the next ``length`` bytes, or None where they are too many to keep."""
        start = self._offset
        self._offset += length
        return self._view[start : self._offset] if length <= _MAX_NAME_BYTES else None

    def _value_type(self) -> GGUFValueType:
        number = self._u32()
        try:
            return GGUFValueType(number)
        except ValueError:
            self._refuse(f"has a value of type {number}, which is not known")

    def _u32(self) -> int:
        return int(self._scalar(_UINT32))

    def _u64(self) -> int:
        return int(self._scalar(_UINT64))

    def _scalar(self, layout: struct.Struct) -> Scalar:
        self._check_room(layout.size)
        value: Scalar = layout.unpack_from(self._view, self._offset)[0]
        self._offset += layout.size
        return value

    def _check_room(self, needed_bytes: int) -> None:
        if self._offset + needed_bytes > len(self._view):
            self._truncated()

    def _truncated(self, needed_bytes: int | None = None) -> NoReturn:
        has = format_bytes(self._file_bytes)
        if needed_bytes is not None:
            self._refuse(f"is truncated: its tensors end at {format_bytes(needed_bytes)} and it has {has}")
        self._refuse(f"is truncated or damaged: its header goes on after its {has}")

    def _refuse(self, fault: str, hint: str = "Download it again.") -> NoReturn:
        raise ModelError(f"{self._path} {fault}.", hint)


def _alignment(path: Path, metadata: Mapping[str, Value]) -> int:
    alignment = metadata.get("general.alignment", GGUF_DEFAULT_ALIGNMENT)
    if isinstance(alignment, int) and alignment > 0 and alignment & (alignment - 1) == 0:
        return alignment
    raise ModelError(f"{path} has an alignment that is not a power of two: {alignment}.")
