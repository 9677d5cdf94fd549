"""A folder as Ollama's Linux package lays it out, with a real engine's files."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from xlm_llamacpp.engine import InstalledEngine

# Ollama's package has each accelerator's backend in a folder of its own.
ACCELERATORS = ("vulkan", "cuda")


@dataclass(frozen=True)
class OllamaLayout:
    """An Ollama under ``root``."""

    root: Path

    @classmethod
    def make(cls, root: Path, engine: InstalledEngine) -> OllamaLayout:
        """Lay ``engine`` out under ``root``; only the program ``ollama`` itself is a stand-in."""
        layout = cls(root)
        layout.library.mkdir(parents=True)
        for file in sorted(engine.server.parent.iterdir()):
            accelerator = next((name for name in ACCELERATORS if f"ggml-{name}" in file.name), None)
            folder = layout.library / accelerator if accelerator else layout.library
            folder.mkdir(exist_ok=True)
            if not file.name.startswith(("llama-bench", "libllama-bench")):
                _place(file, folder / file.name)
        layout.program.parent.mkdir()
        layout.program.write_text(
            "#!/bin/sh\necho 'ollama version is 0.0.0 (a stand-in)'\n", encoding="utf-8"
        )
        layout.program.chmod(0o755)
        return layout

    @property
    def program(self) -> Path:
        """The program ``ollama``."""
        return self.root / "bin" / "ollama"

    @property
    def library(self) -> Path:
        """The folder that holds llama-server and what belongs to it."""
        return self.root / "lib" / "ollama"

    @property
    def server(self) -> Path:
        """The stock llama-server."""
        return self.library / "llama-server"

    def device_folders(self) -> list[Path]:
        """Return the folders that Ollama looks for devices in."""
        return sorted({file.parent for file in self.library.glob("*/*ggml-*")})

    def environment(self, folder: Path | None, inherited: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a llama-server with the devices of ``folder``."""
        folders = [str(self.library), *([str(folder)] if folder else [])]
        if before := inherited.get("LD_LIBRARY_PATH"):
            folders.append(before)
        environment = {**inherited, "LD_LIBRARY_PATH": ":".join(folders)}
        if folder is not None and (backend := _backend(folder)):
            environment["GGML_BACKEND_PATH"] = str(backend)
        return environment

    def digests(self) -> dict[str, str]:
        """Return what lies under the root: every file's digest, every link's target, every folder."""
        return {
            path.relative_to(self.root).as_posix(): _digest(path) for path in sorted(self.root.rglob("*"))
        }


def _backend(folder: Path) -> Path | None:
    files = sorted(folder.glob("libggml-*"))
    return next((file for file in files if not file.name.startswith(("libggml-base", "libggml-cpu"))), None)


def _place(file: Path, target: Path) -> None:
    if file.is_symlink():
        target.symlink_to(file.readlink())
        return
    try:
        # A link in the file system is a file of its own: the engine looks for backends beside its real path.
        os.link(file.resolve(), target)
    except OSError:
        shutil.copy2(file, target)


def _digest(path: Path) -> str:
    if path.is_symlink():
        return f"link to {path.readlink()}"
    if path.is_dir():
        return f"folder {path.stat().st_mode:o}"
    return f"{path.stat().st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
