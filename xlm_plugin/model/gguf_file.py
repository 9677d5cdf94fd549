"""A GGUF model: one file, or the set of shards that a file belongs to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError
from xlm_plugin.model.gguf_header import read_header
from xlm_plugin.model.stored import StoredModel

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.gguf_header import GGUFHeader

_SHARD_NAME = re.compile(r"(?P<stem>.+)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


def read_gguf(path: Path) -> StoredModel:
    """Return the model that ``path`` is, or is any shard of.

    Raises ModelError for files that are damaged, missing, or do not belong together.
    """
    header = read_header(path)
    files = _shard_paths(path, header)
    headers = [header if file == path else _read_shard(file, path) for file in files]
    _check_set(files, headers)
    tensors = tuple(tensor for each in headers for tensor in each.tensors)
    if len({tensor.name for tensor in tensors}) != len(tensors):
        raise ModelError(
            f"The parts of {files[0]} name a tensor twice.", "They are parts of different models."
        )
    # Only the first shard carries the model's own keys.
    metadata = headers[0].metadata
    stem = match["stem"] if (match := _SHARD_NAME.fullmatch(files[0].name)) else path.stem
    return StoredModel(
        name=str(metadata.get("general.name", stem)),
        format="gguf",
        path=files[0],
        files=files,
        file_bytes=sum(each.file_bytes for each in headers),
        metadata=metadata,
        tensors=tensors,
    )


def _shard_paths(path: Path, header: GGUFHeader) -> tuple[Path, ...]:
    """Return all files of the set; names count from 1, ``split.no`` from 0."""
    count = header.metadata.get("split.count", 1)
    if not isinstance(count, int) or count <= 1:
        return (path,)
    match = _SHARD_NAME.fullmatch(path.name)
    if match is None or int(match["count"]) != count:
        raise ModelError(
            f"{path} is one of {count} parts, but its name does not say which.",
            f"Name the parts as they were published: {path.stem}-00001-of-{count:05d}.gguf and so on.",
        )
    return tuple(
        path.with_name(f"{match['stem']}-{number:05d}-of-{count:05d}.gguf") for number in range(1, count + 1)
    )


def _read_shard(file: Path, named: Path) -> GGUFHeader:
    if not file.exists():
        raise ModelError(
            f"{named} is one part of a split model, and its part {file.name} is missing.",
            f"Download it into {file.parent}.",
        )
    return read_header(file)


def _check_set(files: tuple[Path, ...], headers: list[GGUFHeader]) -> None:
    if len(files) == 1:
        return
    for position, (file, header) in enumerate(zip(files, headers, strict=True)):
        number = header.metadata.get("split.no")
        if number != position:
            raise ModelError(
                f"{file} says that it is part {number} (from 0), and its name says {position}.",
                "Download it again.",
            )
    expected = headers[0].metadata.get("split.tensors.count")
    found = sum(len(header.tensors) for header in headers)
    if expected != found:
        raise ModelError(
            f"The {len(files)} parts of {files[0]} hold {found} tensors and should hold {expected}.",
            "They are parts of different models.",
        )
