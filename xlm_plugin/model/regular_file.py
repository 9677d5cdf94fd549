"""Opening a model file, with one sentence for each way that it can fail."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO


@contextmanager
def open_regular(path: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Open ``path`` for reading and give its stream and size in bytes.

    Raises ModelError where it is missing, empty, not a regular file, or may not be read.
    """
    try:
        # A pipe or a device would block or never end: look before opening.
        if not stat.S_ISREG(path.stat().st_mode):
            raise ModelError(
                f"{path} is not a file.", "Name a .gguf file, or a folder with a Hugging Face model."
            )
        stream = path.open("rb")
    except FileNotFoundError:
        raise ModelError(f"There is no file {path}.") from None
    except PermissionError:
        raise ModelError(f"{path} may not be read by this user.", "Change its permissions.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}.") from None
    with stream:
        size = os.fstat(stream.fileno()).st_size
        if size == 0:
            raise ModelError(f"{path} is empty.", "Download it again.")
        yield stream, size
