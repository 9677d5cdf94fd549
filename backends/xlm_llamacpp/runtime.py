"""One private directory per engine process: its plan, its control socket, and a record of it."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD = "engine.json"
SOCKET = "control.sock"
PLAN = "plan.json"

# A Unix socket address holds 107 characters (sockaddr_un, Linux); the path below the root takes 22.
_ROOT_CHARACTERS = 85
_START_SECONDS = 60


@dataclass(frozen=True)
class EngineRecord:
    """An engine of ours, as its runtime directory tells.

    ``started`` is a Unix time in seconds, ``name`` what the engine was started by, and ``model`` its model's
    own name.
    """

    pid: int
    started: float
    name: str
    model: str
    url: str
    device: str
    emulated: bool


@dataclass(frozen=True)
class RunningEngine:
    """An engine process that is alive, and where it is spoken to."""

    record: EngineRecord
    directory: Path

    @property
    def socket(self) -> Path:
        """The control socket."""
        return self.directory / SOCKET


def new_directory() -> Path:
    """Return the path of a runtime directory that does not exist yet."""
    return _roots()[0] / secrets.token_hex(4)


def create(directory: Path) -> None:
    """Make ``directory`` and its parents for this user only, and remove what dead engines left there.

    Raises EngineError where that is impossible.
    """
    root = directory.parent
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = root.lstat()
        if status.st_uid != os.getuid() or status.st_mode & 0o077:
            raise EngineError(f"{root} is not private to this user.", "Remove it and start again.")
        directory.mkdir(mode=0o700)
    except OSError as error:
        raise EngineError(
            f"The directory {directory} cannot be made: {error.strerror}.",
            "Set XDG_RUNTIME_DIR to a directory that you can write to.",
        ) from None
    _remove_dead(root)


def write_record(directory: Path, pid: int, url: str, name: str = "") -> None:
    """Note in ``directory`` which process runs the plan that lies there, so that other commands find it.

    Without a ``name`` it goes by its model's.
    """
    import psutil

    plan = json.loads((directory / PLAN).read_text(encoding="utf-8"))
    record = EngineRecord(
        pid=pid,
        started=psutil.Process(pid).create_time(),
        name=name or plan["model"]["name"],
        model=plan["model"]["name"],
        url=url,
        device=plan["device"],
        emulated=plan["emulated"],
    )
    unfinished = directory / f".{RECORD}"
    unfinished.write_text(json.dumps(asdict(record)), encoding="utf-8")
    unfinished.replace(directory / RECORD)


def remove(directory: Path) -> None:
    """Remove ``directory`` and all in it."""
    shutil.rmtree(directory, ignore_errors=True)


def running_engines() -> list[RunningEngine]:
    """Return the engines of this user that are alive, oldest first."""
    engines = [
        RunningEngine(record, directory)
        for root in _roots()
        for directory, record in _records(root)
        if record is not None and _is_alive(record)
    ]
    return sorted(engines, key=lambda engine: engine.record.started)


def find_running(pid_or_name: str) -> RunningEngine:
    """Return the running engine that this process id or name is of; raises EngineError if not just one.

    A name is what the engine was started by, or its model's own.
    """
    engines = running_engines()
    found = [engine for engine in engines if pid_or_name in _names(engine.record)]
    if len(found) == 1:
        return found[0]
    if found:
        pids = ", ".join(str(engine.record.pid) for engine in found)
        raise EngineError(f"Several engines run '{pid_or_name}'.", f"Name one by its process id: {pids}.")
    known = ", ".join(f"{engine.record.pid} ({engine.record.name})" for engine in engines)
    raise EngineError(
        f"No running engine is called '{pid_or_name}'.",
        f"Running: {known}." if known else "Start one with 'xlm serve MODEL'.",
    )


def _names(record: EngineRecord) -> tuple[str, ...]:
    return str(record.pid), record.name, record.model


def _roots() -> list[Path]:
    """Return where runtime directories may lie, the preferred place first."""
    session = os.environ.get("XDG_RUNTIME_DIR")
    ours = f"xlm-{os.getuid()}"
    roots = [Path(session) / "xlm"] if session and os.access(session, os.W_OK) else []
    roots.append(Path(tempfile.gettempdir()) / ours)
    short = [root for root in roots if len(str(root)) <= _ROOT_CHARACTERS]
    return short or [Path("/tmp") / ours]


def _records(root: Path) -> Iterator[tuple[Path, EngineRecord | None]]:
    if not root.is_dir() or root.stat().st_uid != os.getuid():
        return
    for directory in root.iterdir():
        yield directory, _read_record(directory)


def _read_record(directory: Path) -> EngineRecord | None:
    try:
        record = EngineRecord(**json.loads((directory / RECORD).read_text(encoding="utf-8")))
        return replace(record, pid=int(record.pid), started=float(record.started))
    except (OSError, ValueError, TypeError):
        return None


def _is_alive(record: EngineRecord) -> bool:
    import psutil

    try:
        process = psutil.Process(record.pid)
        return abs(process.create_time() - record.started) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _remove_dead(root: Path) -> None:
    """Remove the directories of dead engines; one without a record may be starting, so it gets a minute."""
    for directory, record in _records(root):
        if record is not None:
            dead = not _is_alive(record)
        else:
            dead = directory.exists() and time.time() - directory.stat().st_mtime > _START_SECONDS
        if dead:
            remove(directory)
