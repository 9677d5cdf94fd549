"""Where engines lie in the user's cache, what is known about each, and who may build there."""

from __future__ import annotations

import errno
import json
import re
import shutil
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

from xlm_plugin.cache import cache_root
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

STATE = "engine.json"
SOURCE = "src"
UNPACKING = "src.partial"
BUILD = "build"
NATIVE_BUILD = "native.partial"
LOG = "build.log"
_UNFINISHED_STATE = ".engine.json"
# The state goes first: a half-removed engine must not be taken for a finished one.
_MADE = (STATE, _UNFINISHED_STATE, UNPACKING, SOURCE, BUILD, NATIVE_BUILD)
MEASURE = "xlm-measure"
_LIBRARY = "libggml-xlm.so"
# What the device lies in: one folder for each state of its source, so that several versions of xlm share
# an engine. "native" is where it lay before.
_NATIVE_FOLDERS = re.compile(r"native(-[0-9a-f]+)?")


@dataclass(frozen=True, slots=True)
class EngineState:
    """Digests of what the finished steps of an engine were made from; None for a step not finished."""

    source: str | None = None
    build: str | None = None


def engine_root(name: str) -> Path:
    """Return the folder of the engine called ``name``, such as ``b10488-cpu``."""
    return cache_root() / "engines" / name


def server(root: Path) -> Path:
    """Return where llama-server lies in an engine's folder."""
    return root / BUILD / "bin" / "llama-server"


def library(root: Path, digest: str) -> Path:
    """Return where our ggml device made from sources with ``digest`` lies in an engine's folder."""
    return root / f"native-{digest[:16]}" / _LIBRARY


def native_folders(root: Path) -> list[Path]:
    """Return the folders of all devices in an engine's folder."""
    return sorted(path for path in root.glob("native*") if _NATIVE_FOLDERS.fullmatch(path.name))


def keep_library(root: Path, digest: str) -> None:
    """Take the library out of the finished device build in ``root``, in one stroke, and remove the rest.

    The program that measures, where it could be built, is there before the library is.
    """
    target = library(root, digest)
    target.parent.mkdir(exist_ok=True)
    program = root / NATIVE_BUILD / MEASURE
    if program.is_file():
        program.replace(target.with_name(MEASURE))
    (root / NATIVE_BUILD / _LIBRARY).replace(target)
    remove(root / NATIVE_BUILD)


def read_state(root: Path) -> EngineState:
    """Return what the engine in ``root`` records; an unreadable record counts as nothing built."""
    try:
        document = json.loads((root / STATE).read_text(encoding="utf-8"))
        return EngineState(**{field.name: document[field.name] for field in fields(EngineState)})
    except (OSError, ValueError, TypeError, KeyError):
        return EngineState()


def write_state(root: Path, state: EngineState) -> None:
    """Record ``state`` in ``root`` in one stroke."""
    unfinished = root / _UNFINISHED_STATE
    unfinished.write_text(json.dumps(asdict(state), indent=1) + "\n", encoding="utf-8")
    unfinished.replace(root / STATE)


@contextmanager
def build_lock(on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the one build lock of the cache; ``on_wait`` is called once where another process has it."""
    from filelock import FileLock, Timeout

    folder = cache_root() / "engines"
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        on_wait()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def cache_errors() -> Iterator[None]:
    """Turn what the file system refuses inside the block into EngineError."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise disk_full() from None
        reason = error.strerror or str(error)
        raise EngineError(
            f"The cache {cache_root()} cannot be used: {error.filename or 'a file in it'}: {reason}.",
            "Set XLM_CACHE to a folder that you can write to.",
        ) from None


def disk_full(log: Path | None = None) -> EngineError:
    """Return the error of a full disk."""
    hint = "Make room there, or set XLM_CACHE to a folder on another disk, and run the command again."
    return EngineError(f"The disk with {cache_root()} is full.", f"{hint} The log: {log}." if log else hint)


def remove_files(root: Path) -> None:
    """Remove what a build made in ``root``, but for its log."""
    for path in (*(root / name for name in _MADE), *native_folders(root)):
        remove(path)


def remove_engine(root: Path) -> tuple[str, ...]:
    """Remove what builds made in ``root`` and return the names of other things that lie there.

    The folder itself goes when nothing else is in it.
    """
    remove_files(root)
    remove(root / LOG)
    left = tuple(sorted(path.name for path in root.iterdir()))
    if not left:
        root.rmdir()
    return left


def remove(path: Path) -> None:
    """Remove a file, a link or a folder where there is one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
