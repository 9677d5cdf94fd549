"""Models with an option: making, finding and removing them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Final

from xlm_ollama.option import OptionError, is_option, read_option, write_option
from xlm_plugin.cache import cache_root
from xlm_plugin.errors import UsageError

if TYPE_CHECKING:
    import ollama

    from xlm_ollama.client import OllamaServer
    from xlm_ollama.names import ModelName
    from xlm_ollama.option import Option

_LINE: Final = re.compile(r"^(FROM|ADAPTER)\s+(.+?)\s*$", re.MULTILINE)
_NUM_CTX: Final = re.compile(r"^num_ctx\s+(\d+)$", re.MULTILINE)
# Ollama chooses a batch by what is free, unless the model has its own. A plan needs to know.
BATCH_TOKENS: Final = 512


@dataclass(frozen=True, slots=True)
class EnabledModel:
    """A model with an option. ``option`` is None where it is damaged or too new."""

    name: ModelName
    option: Option | None


@dataclass(frozen=True, slots=True)
class ShownModel:
    """What the server says about a model, as far as an option is concerned."""

    name: ModelName
    architecture: str
    file: Path | None
    adapters: tuple[Path, ...]
    context_tokens: int | None

    @property
    def option_file(self) -> Path | None:
        """The file of the option that counts, or None."""
        files = (option for path in self.adapters if (option := _as_option(path)))
        return next(reversed(list(files)), None)


def shown(name: ModelName, response: ollama.ShowResponse) -> ShownModel:
    """Return what ``response`` says. Raises UsageError for a model that has no GGUF file."""
    architecture = (response.modelinfo or {}).get("general.architecture")
    if not isinstance(architecture, str):
        raise UsageError(f"Ollama's '{name}' has no GGUF model: it is of another kind, or runs elsewhere.")
    lines = _LINE.findall(response.modelfile or "")
    files = [Path(path) for word, path in lines if word == "FROM"]
    num_ctx = _NUM_CTX.search(response.parameters or "")
    return ShownModel(
        name,
        architecture,
        files[0] if files and files[0].is_file() else None,
        tuple(Path(path) for word, path in lines if word == "ADAPTER"),
        int(num_ctx[1]) if num_ctx else None,
    )


def enable(
    server: OllamaServer,
    base: ShownModel,
    name: ModelName,
    option: Option,
    context_tokens: int | None = None,
) -> None:
    """Make the model ``name``: ``base`` with ``option``. One of that name with an option is replaced.

    Raises UsageError where ``base`` has an option itself, or ``name`` is somebody's other model.
    """
    if base.option_file:
        raise UsageError(
            f"'{base.name}' has an option already.", "Enable the model that it was made from once more."
        )
    if server.has(name) and not shown(name, server.show(name)).option_file:
        raise UsageError(f"There is a model '{name}' without an option already.", "Choose another with --as.")
    file = _kept(replace(option, base=str(base.name)), base.architecture)
    parameters = {"num_ctx": context_tokens, "num_batch": BATCH_TOKENS} if context_tokens else None
    server.create(name, base.name, file, parameters)


def enabled_models(server: OllamaServer) -> list[EnabledModel]:
    """Return all models with an option."""
    found = []
    for name in server.names():
        response = server.show(name)
        if not (response.modelinfo or {}).get("general.architecture"):
            continue
        if file := shown(name, response).option_file:
            found.append(EnabledModel(name, _read(file)))
    return found


def disable(server: OllamaServer, name: ModelName) -> ModelName:
    """Remove the model that ``enable`` made: ``name`` itself, or ``name`` with its usual suffix.

    Returns the name that was removed. Raises UsageError where there is none, or it is not ``enable``'s own.
    """
    names = server.names()
    for candidate in (name, name.with_option()):
        if candidate not in names:
            continue
        file = shown(candidate, server.show(candidate)).option_file
        if file is None:
            continue
        option = _read(file)
        if option is None:
            raise UsageError(f"The option of '{candidate}' is damaged.", f"Run 'ollama rm {candidate}'.")
        if not option.base:
            raise UsageError(
                f"'{candidate}' was made from a Modelfile, not by 'xlm ollama enable'.",
                "Take its ADAPTER line out and run 'ollama create' again.",
            )
        server.delete(candidate)
        return candidate
    raise UsageError(f"'{name}' has no option.", "See 'xlm ollama list'.")


def _kept(option: Option, architecture: str) -> Path:
    """Return the file of ``option``, kept under its digest: Ollama's own may be out of our sight."""
    import hashlib

    folder = cache_root() / "ollama" / "options"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as fault:
        raise OptionError(f"The folder {folder} cannot be made: {fault.strerror or fault}.") from None
    unnamed = folder / "xlm.gguf"
    write_option(option, architecture, unnamed)
    named = folder / f"sha256-{hashlib.sha256(unnamed.read_bytes()).hexdigest()}"
    unnamed.replace(named)
    return named


def _as_option(path: Path) -> Path | None:
    """Return the file of the option at ``path``, or our own copy where that is out of our sight."""
    if is_option(path):
        return path
    copy = cache_root() / "ollama" / "options" / PureWindowsPath(path).name
    return copy if not path.exists() and is_option(copy) else None


def _read(file: Path) -> Option | None:
    try:
        return read_option(file)
    except OptionError:
        return None
