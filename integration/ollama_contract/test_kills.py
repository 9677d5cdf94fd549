"""However often Ollama starts and kills an engine, and whenever, nothing of it stays behind."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import psutil

from integration.ollama_contract.server import Ollama
from xlm_ollama.option import Option

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest

    from integration.ollama_contract.layout import OllamaLayout
    from integration.ollama_contract.server import OllamaModel

STARTS, ALL_STARTS = 15, 1000
# From before the planner is asked to after the engine is ready, on a machine that does nothing else.
LATEST_KILL_SECONDS = 2.0


def processes_of(layout: OllamaLayout, cache: Path) -> list[str]:
    """Return the processes of this Ollama, with their commands."""
    found = []
    for process in psutil.process_iter(["cmdline", "environ"]):
        command = " ".join(process.info["cmdline"] or ())
        of_ours = (process.info["environ"] or {}).get("XLM_CACHE") == str(cache)
        if str(layout.root) in command or of_ours:
            found.append(f"{process.pid} {command}")
    return found


def test_starts_and_kills_leave_no_process_socket_or_file_behind(
    layout: OllamaLayout,
    environment: dict[str, str],
    small: OllamaModel,
    enabled: Callable[[OllamaModel, Option], OllamaModel],
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    cache, runtime = tmp_path / "cache", tmp_path / "xlm"
    own = environment | {"XLM_CACHE": str(cache), "XDG_RUNTIME_DIR": str(tmp_path)}
    model = enabled(small, Option())
    moments = random.Random(6)
    with Ollama(layout, own) as ollama:
        for _ in range(ALL_STARTS if pytestconfig.getoption("--full") else STARTS):
            runner = ollama.start(model)
            time.sleep(moments.uniform(0, LATEST_KILL_SECONDS))
            runner.close()
        assert processes_of(layout, cache) == []
        # A folder without a record may be that of an engine that is just starting: it gets a minute.
        for folder in runtime.glob("*"):
            os.utime(folder, (0, 0))
        ollama.run(model)
        assert len(list(runtime.iterdir())) == 1
    plans = [path for path in cache.rglob("*") if path.is_file()]
    assert {path.suffix for path in plans} == {".json"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "xlm"]
