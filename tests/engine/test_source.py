from __future__ import annotations

import shutil
import tarfile
from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp.engine import ensure_engine, find_engine
from xlm_plugin.errors import EngineError

from .fakes import FOLDER, FakeTool, pin, write_archive

if TYPE_CHECKING:
    from pathlib import Path

ARCHIVE = f"{FOLDER}.tar.gz"
PATCH = """\
--- a/src/llama.cpp
+++ b/src/llama.cpp
@@ -1 +1 @@
-int answer = {before};
+int answer = 42;
"""


def link(name: str, target: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, target
    return info


def test_only_the_llama_cpp_folder_is_unpacked(
    root: Path, pip: FakeTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = pip.folder / ARCHIVE
    names = ("setup.py", "llama.cpp/CMakeLists.txt", "llama.cpp/src/llama.cpp")
    write_archive(archive, [(f"{FOLDER}/{name}", name) for name in names])
    pin(archive, monkeypatch)
    ensure_engine()
    files = (path.relative_to(root / "src") for path in (root / "src").rglob("*") if path.is_file())
    assert sorted(map(str, files)) == ["CMakeLists.txt", "src/llama.cpp"]


def test_an_archive_in_the_cache_needs_no_network(cache: Path, pip: FakeTool) -> None:
    (cache / "sources").mkdir(parents=True)
    shutil.copy(pip.folder / ARCHIVE, cache / "sources")
    pip.behave("offline")
    assert ensure_engine()


def test_without_a_network_the_error_says_where_to_put_the_archive(cache: Path, pip: FakeTool) -> None:
    pip.behave("offline")
    with pytest.raises(EngineError, match=r"Fetching .* failed: No matching distribution") as failure:
        ensure_engine()
    assert f"put {ARCHIVE} into {cache / 'sources'}" in failure.value.hint


def test_a_disk_that_fills_up_while_fetching_is_one_sentence(pip: FakeTool) -> None:
    pip.behave("disk full")
    with pytest.raises(EngineError, match=r"The disk with .* is full\."):
        ensure_engine()


def test_pip_refusing_the_hash_is_a_wrong_hash(pip: FakeTool) -> None:
    pip.behave("wrong hash")
    with pytest.raises(EngineError, match="has a wrong SHA-256 hash and was removed"):
        ensure_engine()


def test_an_archive_with_a_wrong_hash_is_removed_and_not_unpacked(
    cache: Path, root: Path, pip: FakeTool
) -> None:
    (pip.folder / ARCHIVE).write_bytes(b"something else")
    with pytest.raises(EngineError, match="has a wrong SHA-256 hash and was removed"):
        ensure_engine()
    assert not list((cache / "sources").iterdir())
    assert not (root / "src").exists()


@pytest.mark.parametrize(
    "entry",
    [
        (f"{FOLDER}/llama.cpp/../../../evil", "evil"),
        ("/evil", "evil"),
        link(f"{FOLDER}/llama.cpp/evil", "/etc"),
    ],
    ids=["parent", "absolute", "link"],
)
def test_an_archive_that_leads_out_of_its_folder_is_refused(
    root: Path, pip: FakeTool, monkeypatch: pytest.MonkeyPatch, entry: tarfile.TarInfo | tuple[str, str]
) -> None:
    archive = pip.folder / ARCHIVE
    write_archive(archive, [(f"{FOLDER}/llama.cpp/CMakeLists.txt", "project(llama.cpp)"), entry])
    pin(archive, monkeypatch)
    with pytest.raises(EngineError, match=r"an entry that leads out of it: .*evil"):
        ensure_engine()
    assert not (root / "src").exists()


def test_a_damaged_archive_is_one_sentence(pip: FakeTool, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = pip.folder / ARCHIVE
    archive.write_bytes(archive.read_bytes()[:100])
    pin(archive, monkeypatch)
    with pytest.raises(EngineError, match=r"The archive .* is damaged"):
        ensure_engine()


def test_an_archive_without_llama_cpp_is_refused(pip: FakeTool, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = pip.folder / ARCHIVE
    write_archive(archive, [("another/file", "")])
    pin(archive, monkeypatch)
    with pytest.raises(EngineError, match="does not hold"):
        ensure_engine()


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
def test_patches_are_applied_to_the_source(root: Path, package: Path) -> None:
    (package / "patches").mkdir()
    (package / "patches" / "answer.patch").write_text(PATCH.format(before=41))
    ensure_engine()
    assert (root / "src" / "src" / "llama.cpp").read_text() == "int answer = 42;\n"


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
def test_a_patch_that_does_not_apply_is_refused(root: Path, package: Path) -> None:
    (package / "patches").mkdir()
    (package / "patches" / "answer.patch").write_text(PATCH.format(before=40))
    with pytest.raises(EngineError, match=r"The patch answer\.patch does not apply"):
        ensure_engine()
    assert not (root / "src").exists()
    assert find_engine() is None
