"""Ollama in a container: the device's folder, and the Python of its planner, come in by mounts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from xlm_ollama.layout import InstallError, Layout
from xlm_plugin.cache import cache_root

if TYPE_CHECKING:
    from collections.abc import Iterator

# Where the official image has it (Dockerfile, 2026-08).
_IMAGE_FOLDER: Final = "/usr/lib/ollama/xlm"


def staged_layout() -> Layout:
    """Return the layout whose folder is mounted; the engine itself is the container's.

    Raises InstallError where the folder above ours cannot be made.
    """
    root = cache_root() / "ollama" / "docker"
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise InstallError(f"The folder {root} cannot be made: {fault.strerror or fault}.") from None
    return Layout(root)


def mounts(layout: Layout) -> list[str]:
    """Return the options for ``docker run``. Raises InstallError for the system's own Python."""
    folders = sorted(set(_python_folders()))
    if any(folder in (Path("/"), Path("/usr"), Path("/usr/local")) for folder in folders):
        raise InstallError(
            f"xlm is installed in the system's Python ({sys.base_prefix}), which cannot be mounted.",
            "Install xlm-plugin in one that stands alone: uv venv --managed-python.",
        )
    return [
        f"-v {layout.folder}:{_IMAGE_FOLDER}:ro",
        *(f"-v {folder}:{folder}:ro" for folder in folders),
    ]


def _python_folders() -> Iterator[Path]:
    """Yield the environment, the Python that it is made of, and where xlm itself lies."""
    import xlm_plugin

    environment = Path(sys.prefix)
    yield environment
    yield Path(sys.base_prefix).resolve()
    for module_file in (xlm_plugin.__file__, __file__):
        source = Path(module_file or "").parents[1]
        if not source.is_relative_to(environment):
            yield source
