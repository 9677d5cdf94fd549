"""What our library adds to the starts of Ollama's engine: ``python -m integration.ollama_contract.measure``.

Take the figures on a machine that does nothing else. Medians, in milliseconds.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from integration.ollama_contract.conftest import EMULATED, install
from integration.ollama_contract.layout import OllamaLayout
from integration.ollama_contract.runner import Runner, free_port
from integration.ollama_contract.server import OllamaModel, start_arguments
from xlm_llamacpp.engine import find_engine
from xlm_ollama.option import Option, write_option
from xlm_plugin.model.resolve import resolve_model

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 20


def median_ms(seconds: Callable[[], float]) -> float:
    """Return the median of ``RUNS`` measurements, after one that warms caches."""
    seconds()
    return 1000 * statistics.median(seconds() for _ in range(RUNS))


def listing_seconds(layout: OllamaLayout, folder: Path | None) -> float:
    """Return how long one listing of devices takes, with the backend in ``folder``."""
    begin = time.perf_counter()
    subprocess.run(
        [layout.server, "--list-devices", "--offline"],
        env=layout.environment(folder, os.environ),
        check=True,
        capture_output=True,
    )
    return time.perf_counter() - begin


def planning_seconds(layout: OllamaLayout, model: OllamaModel, home: Path) -> float:
    """Return how long it takes from a start by Ollama to the engine's new beginning under a plan."""
    environment = {**os.environ, "XLM_EMULATED": EMULATED, "XDG_RUNTIME_DIR": str(home)}
    port = free_port()
    command = [str(layout.server), *start_arguments(model, port, None)]
    begin = time.perf_counter()
    with Runner(command, layout.environment(layout.library / "xlm", environment), port) as runner:
        while "XLM0" not in runner.command_line:
            time.sleep(0.0005)
        return time.perf_counter() - begin


def main() -> None:
    """Print all figures."""
    engine = find_engine()
    if engine is None:
        sys.exit("no engine is built (xlm engine build)")
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        layout = OllamaLayout.make(home / "ollama", engine)
        folder = install(layout, engine)
        write_option(Option(), "llama", home / "xlm.gguf")
        model = OllamaModel(resolve_model("demo"), adapters=(home / "xlm.gguf",))
        stock = median_ms(lambda: listing_seconds(layout, None))
        ours = median_ms(lambda: listing_seconds(layout, folder))
        print(f"listing of devices without our library {stock:6.1f}")
        print(f"                   with our library    {ours:6.1f}")
        kept = median_ms(lambda: planning_seconds(layout, model, home))
        print(f"start to planned engine, plan kept     {kept:6.1f}")


if __name__ == "__main__":
    main()
