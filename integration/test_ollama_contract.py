"""Started as Ollama starts engines, chosen models run by their plans, and all others as before."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from integration.ollama_contract.discovery import discover
from integration.ollama_contract.install import place_library
from integration.ollama_contract.layout import OllamaLayout
from integration.ollama_contract.server import Ollama, OllamaModel
from xlm_llamacpp import runtime
from xlm_llamacpp.control import DeviceControl
from xlm_llamacpp.engine import find_engine
from xlm_ollama.option import Option, write_option
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xlm_llamacpp.backend import LlamaCppBackend
    from xlm_llamacpp.engine import InstalledEngine
    from xlm_plugin.backend import Completion
    from xlm_plugin.model.graph import ModelGraph

PROMPT = "The river rose in the night and by morning the lower fields were under water."
NEW_TOKENS = 8
BUDGET_BYTES = 61 * MIB
EMULATED = f"memory_bytes={8 * GIB},link_bytes_per_s=16e9,link_latency_s=1e-5"


@pytest.fixture(scope="module")
def engine(backend: LlamaCppBackend) -> InstalledEngine:
    found = find_engine()
    assert backend and found
    return found


@pytest.fixture(scope="module")
def layout(engine: InstalledEngine, tmp_path_factory: pytest.TempPathFactory) -> OllamaLayout:
    """An Ollama with xlm in it."""
    layout = OllamaLayout.make(tmp_path_factory.mktemp("ollama"), engine)
    place_library(layout, engine)
    return layout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What ``ollama serve`` is started with: an emulated accelerator, and a cache that is empty."""
    home = tmp_path_factory.mktemp("home")
    return {
        **os.environ,
        "XLM_EMULATED": EMULATED,
        "XLM_CACHE": str(home / "cache"),
        "XDG_RUNTIME_DIR": str(home),
    }


@pytest.fixture(scope="module")
def ollama(layout: OllamaLayout, environment: dict[str, str]) -> Iterator[Ollama]:
    with Ollama(layout, environment) as ollama:
        yield ollama


@pytest.fixture(scope="module")
def model(demo: ModelGraph) -> OllamaModel:
    """A model as its publisher made it."""
    return OllamaModel(demo.files[0])


@pytest.fixture(scope="module")
def with_option(
    model: OllamaModel, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Option], OllamaModel]:
    """Return the model with an option for ``llama``."""

    def make(option: Option) -> OllamaModel:
        path = tmp_path_factory.mktemp("option") / "sha256-0001"
        write_option(option, "llama", path)
        return replace(model, adapters=(path,))

    return make


@pytest.fixture(scope="module")
def stock(ollama: Ollama, model: OllamaModel) -> Completion:
    """What the model says as its publisher made it."""
    return ollama.run(model).complete(PROMPT, NEW_TOKENS)


@pytest.fixture
def control(environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Callable[[int], DeviceControl]:
    """Return the live control of an engine, by its process id."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", environment["XDG_RUNTIME_DIR"])
    return lambda pid: DeviceControl(runtime.find_running(str(pid)).socket)


def test_ollama_finds_the_emulated_accelerator_in_our_folder(ollama: Ollama) -> None:
    (device,) = ollama.devices
    assert device.name == "EMU0"
    assert "emulated" in device.description
    assert device.total_bytes == 8 * GIB
    assert device.folder.name == "xlm"


def test_without_an_accelerator_our_folder_has_no_device(
    layout: OllamaLayout, environment: dict[str, str]
) -> None:
    bare = {name: value for name, value in environment.items() if name != "XLM_EMULATED"}
    bare["GGML_VK_VISIBLE_DEVICES"] = ""
    assert [device for device in discover(layout, bare) if device.folder.name == "xlm"] == []


def test_a_model_with_an_option_runs_under_its_plan_and_says_what_it_says_without(
    ollama: Ollama,
    with_option: Callable[[Option], OllamaModel],
    control: Callable[[int], DeviceControl],
    stock: Completion,
) -> None:
    runner = ollama.run(with_option(Option(BUDGET_BYTES)))
    planned = runner.complete(PROMPT, NEW_TOKENS)
    assert "--lora" not in runner.command_line
    assert runner.log.devices == ["XLM0"]
    assert runner.log.failures == []
    assert planned.tokens == stock.tokens
    assert planned.logprobs == stock.logprobs
    stats = control(runner.pid).stats()
    assert 0 < stats.device_bytes <= stats.budget_bytes == BUDGET_BYTES
    assert stats.link_bytes > 0


def test_a_spoilt_host_copy_changes_what_a_planned_model_says(
    layout: OllamaLayout,
    environment: dict[str, str],
    with_option: Callable[[Option], OllamaModel],
    stock: Completion,
) -> None:
    spoilt = {**environment, "XLM_TEST_CORRUPT": "blk.3.ffn_up.weight"}
    with Ollama(layout, spoilt) as ollama:
        completion = ollama.run(with_option(Option(BUDGET_BYTES))).complete(PROMPT, NEW_TOKENS)
    assert completion.logprobs != stock.logprobs


def test_another_budget_loads_the_model_anew(
    ollama: Ollama, with_option: Callable[[Option], OllamaModel], control: Callable[[int], DeviceControl]
) -> None:
    first = with_option(Option(BUDGET_BYTES))
    pid = ollama.run(first).pid
    assert ollama.run(first).pid == pid
    runner = ollama.run(with_option(Option(BUDGET_BYTES + 20 * MIB)))
    assert runner.pid != pid
    assert control(runner.pid).stats().budget_bytes == BUDGET_BYTES + 20 * MIB


def test_models_without_an_option_are_started_with_ollamas_own_arguments(
    ollama: Ollama, model: OllamaModel
) -> None:
    runner = ollama.run(model)
    assert "--device" not in runner.command_line
    assert runner.log.devices == ["EMU0"]
    assert not any(line.startswith("xlm:") for line in runner.log.lines)
