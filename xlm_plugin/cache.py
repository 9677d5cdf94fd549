"""Where what is fetched and built is kept."""

from __future__ import annotations

import os
from pathlib import Path

from xlm_plugin.errors import UsageError


def cache_root() -> Path:
    """Return the cache folder: ``$XLM_CACHE``, else the user's own. Raises UsageError for ``~nobody``."""
    if folder := os.environ.get("XLM_CACHE"):
        try:
            return Path(folder).expanduser().absolute()
        except RuntimeError:
            raise UsageError(
                f"XLM_CACHE is '{folder}', and there is no such user.",
                "Set XLM_CACHE to a folder that you can write to.",
            ) from None
    import platformdirs

    return platformdirs.user_cache_path("xlm-plugin")
