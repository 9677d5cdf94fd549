"""A Hugging Face folder: ``config.json`` and the headers of its safetensors files, never the weights.

Layout: 8 bytes of header length, then JSON, then the weights (github.com/huggingface/safetensors).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError
from xlm_plugin.model.hf_config import gguf_metadata, parse_json, quantisation_config, read_json
from xlm_plugin.model.regular_file import open_regular
from xlm_plugin.model.stored import StoredModel, StoredTensor
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# What the safetensors library itself accepts.
_MAX_HEADER_BYTES = 100_000_000
_PACKED_NAMES = (".qweight", ".weight_packed", "_blocks", ".weight")
_BIT_KEYS = ("bits", "w_bit", "num_bits")
_INDEX = "model.safetensors.index.json"


def read_folder(folder: Path) -> StoredModel:
    """Return the model in ``folder``.

    Raises ModelError where a file is missing or damaged, or the weights are not safetensors.
    """
    try:
        names = {path.name for path in folder.iterdir()}
        # Listing takes one permission, opening another.
        (folder / "config.json").exists()
    except OSError as error:
        raise ModelError(
            f"{folder} cannot be read: {error.strerror or error}.", "Change its permissions."
        ) from None
    if "config.json" not in names:
        raise _no_config(folder)
    config = read_json(folder / "config.json")
    files = _weight_files(folder)
    packed = _packed_weights(config)
    tensors: dict[str, StoredTensor] = {}
    for file in files:
        for tensor in _read_header(file, packed):
            if tensor.name in tensors:
                raise ModelError(
                    f"{folder} holds the tensor '{tensor.name}' twice.", "Remove the older files."
                )
            tensors[tensor.name] = tensor
    return StoredModel(
        name=folder.resolve().name,
        format="huggingface",
        path=folder,
        files=files,
        file_bytes=sum(file.stat().st_size for file in files),
        metadata=gguf_metadata(config),
        tensors=tuple(tensors.values()),
    )


def _no_config(folder: Path) -> ModelError:
    gguf = sorted(path.name for path in folder.glob("*.gguf"))
    hint = (
        f"Name one of its files, such as {folder / gguf[0]}." if gguf else "Name a Hugging Face model folder."
    )
    return ModelError(f"{folder} has no config.json.", hint)


def _weight_files(folder: Path) -> tuple[Path, ...]:
    if (folder / _INDEX).exists():
        return _indexed_files(folder)
    if (folder / "model.safetensors").exists():
        return (folder / "model.safetensors",)
    files = tuple(sorted(folder.glob("*.safetensors")))
    if not files:
        raise ModelError(
            f"{folder} has no safetensors files.", "Download the weights in the safetensors format."
        )
    return files


def _indexed_files(folder: Path) -> tuple[Path, ...]:
    index = folder / _INDEX
    placed = read_json(index, _MAX_HEADER_BYTES).get("weight_map")
    names = set(placed.values()) if isinstance(placed, dict) else set()
    if not names or not all(isinstance(name, str) and "/" not in name and "\\" not in name for name in names):
        raise ModelError(
            f"{index} is damaged: it does not say which file holds which tensor.", "Download it again."
        )
    files = tuple(folder / name for name in sorted(names))
    for file in files:
        if not file.exists():
            raise ModelError(
                f"{folder} lacks {file.name}, which its index names.", f"Download it into {folder}."
            )
    return files


def _read_header(path: Path, packed: Mapping[str, int]) -> Iterator[StoredTensor]:
    with open_regular(path) as (stream, size):
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
            raise ModelError(f"{path} is truncated or no safetensors file.", "Download it again.")
        header = parse_json(stream.read(length), str(path))
    body_bytes = size - 8 - length
    for name, entry in header.items():
        if name != "__metadata__":
            yield _tensor(path, name, entry, body_bytes, packed)


def _tensor(path: Path, name: str, entry: object, body_bytes: int, packed: Mapping[str, int]) -> StoredTensor:
    match entry:
        case {"dtype": str(dtype), "shape": [*shape], "data_offsets": [int(start), int(end)]} if (
            0 <= start <= end and all(isinstance(extent, int) and extent > 0 for extent in shape)
        ):
            pass
        case _:
            raise ModelError(
                f"{path} is damaged: its entry for '{name}' makes no sense.", "Download it again."
            )
    if end > body_bytes:
        raise ModelError(
            f"{path} is truncated: it has {format_bytes(body_bytes)} of weights, not {format_bytes(end)}.",
            "Download it again.",
        )
    row_first = tuple(reversed(shape)) or (1,)
    weights_each = packed.get(dtype, 1) if name.endswith(_PACKED_NAMES) else 1
    return StoredTensor(name, dtype, (row_first[0] * weights_each, *row_first[1:]), end - start)


def _packed_weights(config: Mapping[str, object]) -> dict[str, int]:
    """Return how many weights one stored element of a quantised matrix holds, by its dtype."""
    quantisation = quantisation_config(config)
    return {"I32": 32 // (_bits(quantisation) or 4), "U8": 2} if quantisation else {}


def _bits(quantisation: Mapping[str, object]) -> int:
    """Return the bits of one weight, or 0 where the configuration has none."""
    for key, value in quantisation.items():
        if key in _BIT_KEYS and isinstance(value, int) and 0 < value <= 8:
            return value
        if isinstance(value, dict) and (bits := _bits(value)):
            return bits
    return 0
