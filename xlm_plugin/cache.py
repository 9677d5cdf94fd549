"""Where what is fetched and built is kept."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Return the cache folder: ``$XLM_CACHE``, else the user's own."""
    if folder := os.environ.get("XLM_CACHE"):
        return Path(folder).expanduser().absolute()
    import platformdirs

    return platformdirs.user_cache_path("xlm-plugin")
