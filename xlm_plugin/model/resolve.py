"""From what a person calls a model to where it lies on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xlm_plugin.cache import cache_root
from xlm_plugin.errors import ModelError


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model in a store: its file or folder, and the files that its engine loads beside it."""

    path: Path
    adapters: tuple[Path, ...] = ()
    projector: Path | None = None

    @property
    def adapter_bytes(self) -> int:
        """What the adapters take, in memory as on disk."""
        return sum(path.stat().st_size for path in self.adapters)


def find_stored(ref: str) -> FoundModel | None:
    """Return the model that ``ref`` names in a store that a plugin knows, or None where it names none."""
    from xlm_plugin.plugins import get_plugin_manager

    found: FoundModel | None = get_plugin_manager().hook.xlm_find_model(ref=ref)
    return found


def resolve_model(ref: str) -> Path:
    """Return the path of the model that ``ref`` names.

    ``ref`` is a known name, a name in a store that a plugin knows (``ollama:qwen3:30b``), a ``.gguf`` file or
    a folder. A known model, such as ``demo``, is fetched into the user's cache on first use; a file or folder
    of the same name is ``./demo``. Raises ModelError where there is no such model, or it cannot be fetched.
    """
    from xlm_plugin.model.descriptor import fetch_model
    from xlm_plugin.plugins import get_plugin_manager

    known = {model.name: model for models in get_plugin_manager().hook.xlm_models() for model in models}
    if ref in known:
        return fetch_model(known[ref], cache_root() / "models")
    if stored := find_stored(ref):
        return stored.path
    try:
        path = Path(ref).expanduser()
        path.stat()
    except PermissionError:
        raise ModelError(f"{ref} may not be read by this user.", "Change its permissions.") from None
    # RuntimeError is ~ with an unknown user, OSError also a name that is too long for one.
    except (OSError, RuntimeError):
        names = f", or one of: {', '.join(sorted(known))}" if known else ""
        raise ModelError(
            f"There is no model '{ref}'.", f"Name a .gguf file or a folder with a Hugging Face model{names}."
        ) from None
    return path
