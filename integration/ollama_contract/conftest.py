"""An Ollama with xlm in it, on an emulated accelerator."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from integration.ollama_contract.layout import OllamaLayout
from integration.ollama_contract.server import Ollama, OllamaModel
from integration.tiny_models.lora import write_tiny_lora
from xlm_llamacpp import runtime
from xlm_llamacpp.control import DeviceControl
from xlm_llamacpp.engine import find_engine
from xlm_llamacpp.engine.releases import find_release
from xlm_ollama.install import Installation
from xlm_ollama.layout import Layout
from xlm_ollama.option import Option, write_option
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from integration.ollama_contract.runner import Runner
    from xlm_llamacpp.backend import LlamaCppBackend
    from xlm_llamacpp.engine import InstalledEngine
    from xlm_plugin.model.graph import ModelGraph

PROMPT = "The river rose in the night and by morning the lower fields were under water."
NEW_TOKENS = 6
BUDGET_BYTES = 61 * MIB
EMULATED = f"memory_bytes={8 * GIB},link_bytes_per_s=16e9,link_latency_s=1e-5"


@dataclass(frozen=True)
class Said:
    """What an engine says: ids and log-probabilities."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]


def ask(runner: Runner) -> Said:
    """Return what ``runner`` says to the question that all are asked."""
    completion = runner.complete(PROMPT, NEW_TOKENS)
    return Said(completion.tokens, completion.logprobs)


@pytest.fixture(scope="session")
def engine(backend: LlamaCppBackend) -> InstalledEngine:
    found = find_engine()
    assert backend and found
    return found


def install(layout: OllamaLayout, engine: InstalledEngine) -> Path:
    """Put the device of ``engine`` into ``layout`` as ``xlm ollama install`` does, and return its folder."""
    ours = Layout(layout.library)
    Installation.of(ours, engine.library, find_release(engine.version)).write()
    return ours.folder


@pytest.fixture
def fresh(engine: InstalledEngine, tmp_path: Path) -> OllamaLayout:
    """An Ollama with xlm in it that a test may spoil."""
    layout = OllamaLayout.make(tmp_path / "ollama", engine)
    install(layout, engine)
    return layout


@pytest.fixture(scope="session")
def layout(engine: InstalledEngine, tmp_path_factory: pytest.TempPathFactory) -> OllamaLayout:
    layout = OllamaLayout.make(tmp_path_factory.mktemp("shared") / "ollama", engine)
    install(layout, engine)
    return layout


@pytest.fixture(scope="session")
def vulkan_layout(tmp_path_factory: pytest.TempPathFactory) -> OllamaLayout:
    """An Ollama with xlm in it and a real accelerator's backend."""
    engine = find_engine(variant="vulkan")
    if engine is None:
        pytest.skip("no Vulkan engine is built (xlm engine build --accelerator vulkan)")
    layout = OllamaLayout.make(tmp_path_factory.mktemp("vulkan") / "ollama", engine)
    install(layout, engine)
    return layout


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What ``ollama serve`` is started with: an emulated accelerator, and a cache that is empty."""
    home = tmp_path_factory.mktemp("home")
    return {
        **os.environ,
        "XLM_EMULATED": EMULATED,
        "OLLAMA_LLM_LIBRARY": "xlm",
        # The threads of host and emulated device share the cores.
        "OMP_WAIT_POLICY": "passive",
        "XLM_CACHE": str(home / "cache"),
        "XDG_RUNTIME_DIR": str(home),
    }


@pytest.fixture(scope="module")
def ollama(layout: OllamaLayout, environment: dict[str, str]) -> Iterator[Ollama]:
    with Ollama(layout, environment) as ollama:
        yield ollama


@pytest.fixture(scope="session")
def model(demo: ModelGraph) -> OllamaModel:
    """A model as its publisher made it."""
    return OllamaModel(demo.files[0])


@pytest.fixture(scope="session")
def small(tiny: Callable[[str], ModelGraph]) -> OllamaModel:
    """A random model that loads at once."""
    return OllamaModel(tiny("llama").files[0])


@pytest.fixture(scope="session")
def small_adapter(tiny: Callable[[str], ModelGraph], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An adapter with tensors for the small model."""
    path = tmp_path_factory.mktemp("adapter") / "lora.gguf"
    write_tiny_lora(path, tiny("llama"))
    return path


@pytest.fixture(scope="session")
def option_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Option], Path]:
    """Return the file of an option, named as Ollama names what it stores."""

    def make(option: Option) -> Path:
        path = tmp_path_factory.mktemp("blobs") / "sha256-0001"
        write_option(option, "llama", path)
        return path

    return make


@pytest.fixture(scope="session")
def enabled(option_file: Callable[[Option], Path]) -> Callable[[OllamaModel, Option], OllamaModel]:
    """Return a model with an option."""
    return lambda model, option: replace(model, adapters=(*model.adapters, option_file(option)))


@pytest.fixture(scope="module")
def stock(ollama: Ollama, model: OllamaModel) -> Said:
    """What the model says as its publisher made it."""
    return ask(ollama.run(model))


@pytest.fixture(scope="module")
def small_stock(ollama: Ollama, small: OllamaModel) -> Said:
    """What the small model says as its publisher made it."""
    return ask(ollama.run(small))


@pytest.fixture
def control(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[[int], DeviceControl]:
    """Return the live control of an engine, by its process id."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    return lambda pid: DeviceControl(runtime.find_running(str(pid)).socket)
