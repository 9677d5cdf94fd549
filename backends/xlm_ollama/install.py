"""Putting the device into an Ollama, and taking it out again.

All lies in one folder of our own, ``lib/ollama/xlm``: nothing of Ollama's is changed. The library comes last,
in one stroke, since Ollama takes a folder for a device's by its ``libggml-*`` file alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from xlm_ollama.layout import InstallError, find_layout
from xlm_plugin import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xlm_llamacpp.engine.releases import Release
    from xlm_ollama.layout import Layout

LIBRARY: Final = "libggml-xlm.so"
SETTINGS: Final = "xlm.json"
MANIFEST: Final = "manifest.json"
FORMAT: Final = "xlm.ollama/1"
# No name that Ollama, or the library itself, looks for.
_UNFINISHED: Final = "unfinished."

State = Literal["installed", "not installed", "damaged"]


@dataclass(frozen=True)
class Installation:
    """What is to lie in our folder: each file's name and content, in the order of writing."""

    folder: Path
    files: Mapping[str, bytes]

    @classmethod
    def of(cls, layout: Layout, library: Path, release: Release) -> Installation:
        """Return the installation of ``library``, which was made for ``release``, in ``layout``."""
        settings = {
            "planner": planner_command(),
            "ggml_version": release.ggml_version,
            "cache": "",
        }
        files = {SETTINGS: _json(settings), LIBRARY: _read(library)}
        manifest = {
            "format": FORMAT,
            "xlm": __version__,
            "ggml_version": release.ggml_version,
            "files": {name: _digest(content) for name, content in files.items()},
        }
        return cls(layout.folder, {MANIFEST: _json(manifest), **files})

    def write(self) -> None:
        """Write all files. Raises InstallError where the folder is not ours or cannot be written to.

        A process that is killed here leaves a folder without a library, which Ollama takes no notice of, or
        the library that was there before.
        """
        _check_ours(self.folder)
        made = not self.folder.exists()
        try:
            self.folder.mkdir(mode=0o755, exist_ok=True)
            for name, content in self.files.items():
                _write(self.folder / f"{_UNFINISHED}{name}", content, 0o644)
            for name in self.files:
                (self.folder / f"{_UNFINISHED}{name}").replace(self.folder / name)
        except OSError as fault:
            with suppress(OSError):
                _remove_unfinished(self.folder)
                if made:
                    shutil.rmtree(self.folder)
            raise _no_write(self.folder, fault) from None


def planner_command() -> list[str]:
    """Return the command of the planner, of this very Python."""
    # Nothing that lies in the folder that Ollama runs in is to be imported.
    safe = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *safe, "-m", "xlm_ollama.start"]


def state_of(layout: Layout) -> tuple[State, str]:
    """Return what is in ``layout``, and what is wrong with it in words."""
    folder = layout.folder
    if not (folder / LIBRARY).exists():
        return "not installed", ""
    try:
        manifest = read_manifest(folder)
    except InstallError as fault:
        return "damaged", fault.message
    for name, digest in manifest["files"].items():
        try:
            found = _digest((folder / name).read_bytes())
        except OSError:
            return "damaged", f"{folder / name} is gone."
        if found != digest:
            return "damaged", f"{folder / name} is not as it was written."
    return "installed", ""


def reminder() -> str | None:
    """Return what to tell a person whose models cannot run under a plan here, or None.

    An Ollama that is on another machine, or out of sight, is not spoken of.
    """
    try:
        layout = find_layout()
    except InstallError:
        return None
    state, fault = state_of(layout)
    if state == "installed":
        return None
    return f"{fault or 'xlm is not in Ollama: an upgrade removes it.'} Run 'xlm ollama install'."


def uninstall(layout: Layout) -> list[str]:
    """Remove what an installation made and return the names of other things that lie in our folder.

    The folder itself goes when nothing else is in it. Raises InstallError where nothing is installed, or it
    cannot be removed.
    """
    folder = layout.folder
    if not folder.exists():
        raise InstallError(f"xlm is not in {layout.root}.")
    _check_ours(folder)
    try:
        # The library goes first: without it Ollama takes no notice of the folder.
        for name in (LIBRARY, SETTINGS, MANIFEST):
            (folder / name).unlink(missing_ok=True)
        _remove_unfinished(folder)
        left = sorted(path.name for path in folder.iterdir())
        if not left:
            folder.rmdir()
    except OSError as fault:
        raise _no_write(folder, fault) from None
    return left


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest in ``folder``. Raises InstallError where there is none that can be read."""
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if manifest["format"] != FORMAT or not all(map(str, manifest["files"].values())):
            raise ValueError
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        raise InstallError(
            f"{folder / MANIFEST} is missing or damaged.", "Run 'xlm ollama install' again."
        ) from None
    return manifest


def _check_ours(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InstallError(f"{folder} is not a folder of xlm's.", "Move it away.")
    ours = {LIBRARY, SETTINGS, MANIFEST, *(f"{_UNFINISHED}{n}" for n in (LIBRARY, SETTINGS, MANIFEST))}
    if folder.exists() and not (folder / MANIFEST).exists():
        strange = sorted(path.name for path in folder.iterdir() if path.name not in ours)
        if strange:
            raise InstallError(
                f"{folder} was not made by xlm: it holds {', '.join(strange)}.", "Move it away."
            )


def _remove_unfinished(folder: Path) -> None:
    for path in folder.glob(f"{_UNFINISHED}*"):
        path.unlink()


def _write(path: Path, content: bytes, mode: int) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    path.chmod(mode)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as fault:
        raise InstallError(f"{path} cannot be read: {fault.strerror or fault}.") from None


def _json(document: object) -> bytes:
    return (json.dumps(document, indent=1) + "\n").encode()


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _no_write(folder: Path, fault: OSError) -> InstallError:
    from xlm_plugin.cache import cache_root

    hint = ""
    if isinstance(fault, PermissionError):
        program = Path(sys.argv[0]).absolute()
        hint = f"Run it as its owner: sudo env XLM_CACHE={cache_root()} {program} ollama ..."
    return InstallError(f"{folder} cannot be written to: {fault.strerror or fault}.", hint)
