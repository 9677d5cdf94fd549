"""The engine: a pinned llama.cpp release, built on this machine together with our ggml device."""

from __future__ import annotations

from xlm_llamacpp.engine.build import ensure_device, ensure_engine
from xlm_llamacpp.engine.installed import InstalledEngine, find_engine
from xlm_llamacpp.engine.progress import Progress, terminal_progress

__all__ = [
    "InstalledEngine",
    "Progress",
    "ensure_device",
    "ensure_engine",
    "find_engine",
    "terminal_progress",
]
