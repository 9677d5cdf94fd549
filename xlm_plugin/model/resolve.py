"""From what a person calls a model to where it lies on disk."""

from __future__ import annotations

from pathlib import Path

from xlm_plugin.cache import cache_root
from xlm_plugin.errors import ModelError


def resolve_model(ref: str) -> Path:
    """Return the path of the model that ``ref`` names.

    ``ref`` is a known name, a name in a store that a plugin knows (``ollama:qwen3:30b``), a ``.gguf`` file or
    a folder. A known model, such as ``demo``, is fetched into the user's cache on first use; a file or folder
    of the same name is ``./demo``. Raises ModelError where there is no such model, or it cannot be fetched.
    """
    from xlm_plugin.model.descriptor import fetch_model
    from xlm_plugin.plugins import get_plugin_manager

    hook = get_plugin_manager().hook
    known = {model.name: model for models in hook.xlm_models() for model in models}
    if ref in known:
        return fetch_model(known[ref], cache_root() / "models")
    stored: Path | None = hook.xlm_find_model(ref=ref)
    if stored is not None:
        return stored
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
