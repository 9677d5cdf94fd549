"""Ollama's models as they lie on disk, readable whether its server runs or not.

A manifest ``manifests/HOST/NAMESPACE/MODEL/TAG`` lists layers by digest, each a file in ``blobs``.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from xlm_ollama.names import ModelName
from xlm_ollama.option import is_option
from xlm_plugin.errors import ModelError
from xlm_plugin.model.resolve import FoundModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LAYER: Final = "application/vnd.ollama.image."


@dataclass(frozen=True)
class StoredOllamaModel:
    """A model of Ollama's and the files of its layers."""

    name: ModelName
    model: Path
    adapters: tuple[Path, ...]
    projectors: tuple[Path, ...]

    @property
    def found(self) -> FoundModel:
        """The model as an engine loads it: options are no adapters."""
        adapters = tuple(path for path in self.adapters if not is_option(path))
        return FoundModel(self.model, adapters, next(iter(self.projectors), None))


def model_folders() -> list[Path]:
    """Return where Ollama keeps models: ``$OLLAMA_MODELS``, or the user's and the service's folders."""
    if folder := os.environ.get("OLLAMA_MODELS"):
        return [Path(folder)]
    return [Path.home() / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")]


def find_model(name: str) -> StoredOllamaModel:
    """Return the model called ``name``, such as ``qwen3:30b``.

    Raises ModelError where there is none, with names that are near, and where its files are no GGUF model.
    """
    wanted = ModelName.parse(name)
    unreadable = []
    for folder in model_folders():
        manifest = folder / "manifests" / wanted.path
        try:
            text = manifest.read_text(encoding="utf-8")
        except PermissionError:
            unreadable.append(folder)
            continue
        except (OSError, ValueError):
            continue
        return _stored(wanted, folder, text)
    raise _unknown(name, unreadable)


def model_names() -> list[ModelName]:
    """Return the names of all models on disk that this user may see."""
    return sorted(name for folder in model_folders() for name in _names_in(folder / "manifests"))


def _names_in(manifests: Path) -> Iterator[ModelName]:
    # Path.glob leaves out what may not be read.
    for path in manifests.glob("*/*/*/*"):
        if path.is_file() and not path.name.startswith("."):
            yield ModelName(*path.relative_to(manifests).parts)


def _stored(name: ModelName, folder: Path, text: str) -> StoredOllamaModel:
    try:
        layers = [(str(layer["mediaType"]), str(layer["digest"])) for layer in _layers(json.loads(text))]
    except (ValueError, TypeError, KeyError):
        raise ModelError(f"Ollama's manifest of '{name}' is damaged.", f"Run 'ollama pull {name}'.") from None

    def files(kind: str) -> tuple[Path, ...]:
        digests = (digest for media_type, digest in layers if media_type == _LAYER + kind)
        return tuple(folder / "blobs" / digest.replace(":", "-") for digest in digests)

    models = files("model")
    if not models:
        raise ModelError(f"Ollama's '{name}' has no GGUF model: it is of another kind, or runs elsewhere.")
    for path in (*models, *files("adapter"), *files("projector")):
        if not path.is_file():
            raise ModelError(f"Ollama's '{name}' lacks its file {path}.", f"Run 'ollama pull {name}'.")
    return StoredOllamaModel(name, models[0], files("adapter"), files("projector"))


def _layers(document: Any) -> list[Mapping[str, str]]:
    layers = document["layers"]
    if not isinstance(layers, list):
        raise TypeError
    return layers


def _unknown(name: str, unreadable: list[Path]) -> ModelError:
    if unreadable:
        return ModelError(
            f"Ollama's models in {unreadable[0]} may not be read by this user.",
            "Run it as the user that Ollama runs as, or set OLLAMA_MODELS.",
        )
    known = [str(found) for found in model_names()]
    near = get_close_matches(name, known, n=3, cutoff=0.4)
    if near:
        return ModelError(f"Ollama has no model '{name}'.", f"Near: {', '.join(near)}.")
    hint = f"It has: {', '.join(known[:8])}." if known else f"There are none in {model_folders()[0]}."
    return ModelError(f"Ollama has no model '{name}'.", hint)
