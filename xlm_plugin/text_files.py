"""Reading and writing documents, with one sentence for each way that it can fail."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.errors import XlmError

# Far above any document of ours, far below what would fill the memory.
MAX_BYTES = 256 << 20


def read_text(path: Path, what: str, error: type[XlmError]) -> str:
    """Return the text in the file ``path``. Raises ``error``, which names ``what`` cannot be read and why."""
    try:
        # A device may never end, and a pipe may never begin.
        if not stat.S_ISREG(path.stat().st_mode):
            raise error(f"The {what} {path} cannot be read: it is not a file.")
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as fault:
        raise error(f"The {what} {path} cannot be read: {fault.strerror or fault}.") from None
    if len(data) > MAX_BYTES:
        raise error(f"The {what} {path} cannot be read: it is far too large.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise error(f"The {what} {path} cannot be read: it is not text.") from None


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """Give a path beside ``target`` to write to; its file then takes that place, or goes where that fails."""
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(target)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise


def write_text(path: Path, text: str, what: str, error: type[XlmError]) -> None:
    """Write ``text`` to ``path``, whole or not at all. Raises ``error`` where that fails.

    A symbolic link keeps pointing where it did; a pipe or a device is written to.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_text(text, encoding="utf-8")
        else:
            with replacing(Path(os.path.realpath(path))) as part:
                part.write_text(text, encoding="utf-8")
    except OSError as fault:
        raise error(f"The {what} cannot be written to {path}: {fault.strerror or fault}.") from None
