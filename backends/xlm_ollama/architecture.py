"""Which architecture a Modelfile's FROM line names: an option has to have the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


def architecture_of(base: str, folder: Path) -> str:
    """Return the architecture of ``base``: a file, seen from ``folder``, or one of Ollama's models.

    A model that is not on this disk is asked of the Ollama server. Raises ModelError or OllamaError.
    """
    path = folder / base
    if path.is_file():
        return _read(path)
    if base.startswith((".", "/", "~")) or base.endswith(".gguf"):
        raise ModelError(f"There is no file {path}, which the FROM line names.")
    from xlm_ollama.store import find_model

    try:
        return _read(find_model(base).model)
    except ModelError:
        return _ask(base)


def _read(path: Path) -> str:
    from xlm_plugin.model.gguf_header import read_header

    architecture = read_header(path).metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise UsageError(f"{path} does not say which architecture it has.")
    return architecture


def _ask(base: str) -> str:
    from xlm_ollama.client import OllamaServer
    from xlm_ollama.enabled import shown
    from xlm_ollama.names import ModelName

    name = ModelName.parse(base)
    return shown(name, OllamaServer().show(name)).architecture
