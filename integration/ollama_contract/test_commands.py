"""From install to uninstall by the commands that a person types, with Ollama's own client."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from integration.ollama_contract.conftest import ask
from integration.ollama_contract.layout import OllamaLayout
from integration.ollama_contract.server import Ollama, OllamaModel
from tests.ollama.fake_ollama import LAYER, ModelStore, serving

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_llamacpp.engine import InstalledEngine
    from xlm_plugin.model.graph import ModelGraph


def model(store: ModelStore, name: str) -> OllamaModel:
    """Return the model as the server knows it."""
    layers = store.layers(name)
    assert layers is not None
    files: dict[str, list[Path]] = {"model": [], "adapter": []}
    for layer in layers:
        files.get(layer["mediaType"].removeprefix(LAYER), []).append(store.blob(layer["digest"]))
    return OllamaModel(files["model"][0], adapters=tuple(files["adapter"]))


def test_a_model_is_enabled_changed_and_disabled_and_all_is_as_before(
    engine: InstalledEngine, environment: dict[str, str], demo: ModelGraph, tmp_path: Path
) -> None:
    layout = OllamaLayout.make(tmp_path / "ollama", engine)
    before = layout.digests()
    store = ModelStore(tmp_path / "models")
    store.write("demo", [store.add_layer("model", demo.files[0].read_bytes())])

    with serving(store) as url:

        def xlm(*arguments: str) -> None:
            subprocess.run(
                [sys.executable, "-c", "from xlm_plugin.cli import main; main()", "ollama", *arguments],
                env={**os.environ, "OLLAMA_HOST": url, "OLLAMA_MODELS": str(store.folder)},
                check=True,
            )

        xlm("install", "--prefix", str(layout.root))
        with Ollama(layout, environment) as ollama:
            stock = ask(ollama.run(model(store, "demo")))
            xlm("enable", "demo", "--vram", "61MiB")
            small = ollama.run(model(store, "demo:latest-xlm"))
            assert "XLM0" in small.command_line
            assert ask(small).tokens == stock.tokens
            xlm("enable", "demo", "--vram", "80MiB")
            large = ollama.run(model(store, "demo:latest-xlm"))
            assert large.pid != small.pid
            assert "XLM0" in large.command_line
            assert ask(large).tokens == stock.tokens
        xlm("disable", "demo")
        xlm("uninstall", "--prefix", str(layout.root))
    assert store.names() == ["demo:latest"]
    assert layout.digests() == before
