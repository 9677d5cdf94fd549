"""Our two files in an Ollama's folder, put there without the installer."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from integration.ollama_contract.layout import OllamaLayout
    from xlm_llamacpp.engine import InstalledEngine

PLANNER = (sys.executable, "-m", "xlm_ollama.start")


def place_library(
    layout: OllamaLayout,
    engine: InstalledEngine,
    *,
    planner: Sequence[str] = PLANNER,
    ggml_version: str | None = None,
) -> Path:
    """Put the library of ``engine`` and its ``xlm.json`` where Ollama looks, and return their folder."""
    folder = layout.library / "xlm"
    folder.mkdir(exist_ok=True)
    shutil.copy2(engine.library, folder / engine.library.name)
    described = {"planner": list(planner), "ggml_version": ggml_version or engine.ggml_version}
    (folder / "xlm.json").write_text(json.dumps(described), encoding="utf-8")
    return folder
