"""Where an Ollama keeps its engine and its device libraries, and which ggml that engine is of.

Ollama looks for ``lib/ollama`` from its own executable (ml/path.go, 2026-08); each folder in there with a
``libggml-*`` file is asked for devices.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER: Final = "llama-server"
GGML: Final = "libggml-base.so"
_ASK_GGML: Final = (
    "import ctypes, sys\n"
    "library = ctypes.CDLL(sys.argv[1])\n"
    "library.ggml_version.restype = ctypes.c_char_p\n"
    "print(library.ggml_version().decode())\n"
)
_ASK_SECONDS: Final = 30


class InstallError(EngineError):
    """xlm cannot be put into this Ollama, or taken out of it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """An Ollama's ``lib/ollama`` folder, and ours in it."""

    root: Path

    @property
    def folder(self) -> Path:
        """Our folder beside those of the accelerators."""
        return self.root / "xlm"

    @property
    def accelerators(self) -> tuple[str, ...]:
        """The names of the folders with device libraries beside ours."""
        found = {path.parent.name for path in self.root.glob("*/*ggml-*")}
        return tuple(sorted(found - {self.folder.name}))

    def ggml_version(self) -> str:
        """Return the version of the engine's ggml. Raises InstallError where it says none."""
        library = next(iter(sorted(self.root.glob(f"{GGML}*"))), None)
        if library is None:
            raise InstallError(
                f"There is no {GGML} in {self.root}.", "Update Ollama: old ones have no engine."
            )
        try:
            # In a process of its own: a damaged library may do anything.
            asked = subprocess.run(
                [sys.executable, "-c", _ASK_GGML, str(library)],
                capture_output=True,
                text=True,
                timeout=_ASK_SECONDS,
                check=True,
            )
        except (OSError, subprocess.SubprocessError):
            raise InstallError(
                f"{library} does not say which version of ggml it is.",
                "It may be damaged, for another machine, or too old: install Ollama again.",
            ) from None
        return asked.stdout.strip()


def find_layout(prefix: Path | None = None) -> Layout:
    """Return the layout below ``prefix``, or of the Ollama of this machine.

    Raises InstallError where there is none.
    """
    if prefix is not None:
        candidates = [prefix, prefix / "lib" / "ollama"]
        hint = f"Name the folder that {SERVER} lies in, such as /usr/local/lib/ollama."
        missing = InstallError(f"There is no {SERVER} of Ollama's in {prefix}.", hint)
    else:
        candidates = list(_usual())
        missing = InstallError(
            f"No Ollama with an engine is found (looked in: {', '.join(map(str, candidates))}).",
            "Install Ollama, or name its folder with --prefix.",
        )
    for candidate in candidates:
        if (candidate / SERVER).is_file():
            return Layout(candidate)
    raise missing


def check_system() -> None:
    """Raise InstallError where the device cannot run."""
    if platform.system() != "Linux":
        raise InstallError(
            f"On {platform.system()} there is no device for Ollama yet: it is built for Linux.",
            "On Windows use Ollama in WSL.",
        )


def _usual() -> Iterator[Path]:
    if program := shutil.which("ollama"):
        binary = Path(program).resolve()
        yield binary.parent.parent / "lib" / "ollama"
        yield binary.parent / "lib" / "ollama"
    yield Path("/usr/local/lib/ollama")
    yield Path("/usr/lib/ollama")
    yield Path.home() / ".local" / "lib" / "ollama"
