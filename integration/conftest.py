"""Real engines and models for the tests in this folder; all of them are marked ``integration``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.tiny_models import write_tiny_model
from xlm_llamacpp.backend import LlamaCppBackend
from xlm_llamacpp.engine import ensure_engine
from xlm_plugin.backend import LaunchOptions
from xlm_plugin.model import read_model
from xlm_plugin.model.resolve import resolve_model
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.target import choose_device, describe_machine
from xlm_plugin.plugins import get_plugin_manager

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_llamacpp.process import ServerProcess
    from xlm_plugin.backend import Completion, DeviceStats
    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan

PROMPT = (
    "The river rose in the night and by morning the lower fields were under water. "
    "Nobody in the village had seen anything like it, and the old bridge, which had stood for two "
    "hundred years, was gone. They looked for the ferryman, who said that"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine", metavar="VERSION", help="the llama.cpp release to test; the default one else"
    )
    parser.addoption("--full", action="store_true", help="try all random plans, not a few of each model")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "integration: runs a real engine")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.integration)


@dataclass(frozen=True)
class Runner:
    """Asks real engines on one device the same question."""

    backend: LlamaCppBackend
    device: Device
    prompt: str = PROMPT
    new_tokens: int = 12
    threads: int = 2
    extra_arguments: tuple[str, ...] = ()

    @property
    def options(self) -> LaunchOptions:
        return LaunchOptions(threads=self.threads, device=self.device, extra_arguments=self.extra_arguments)

    def start(self, plan: Plan, model: ModelGraph, *, corrupt: str = "") -> ServerProcess:
        """Return an engine under ``plan``; ``corrupt`` is a tensor to spoil in host memory after loading."""
        spec = self.backend.launch_spec(plan, model, self.options)
        return self.backend.start(
            replace(spec, environment={**spec.environment, "XLM_TEST_CORRUPT": corrupt})
        )

    def ask(self, engine: ServerProcess) -> Completion:
        """Return what ``engine`` says."""
        return engine.complete(self.prompt, self.new_tokens)

    def under(self, plan: Plan, model: ModelGraph, *, corrupt: str = "") -> tuple[Completion, DeviceStats]:
        """Return what an engine under ``plan`` says, and what its device counts then."""
        with self.start(plan, model, corrupt=corrupt) as engine:
            return self.ask(engine), self.backend.control(engine).stats()

    def start_stock(self, plan: Plan, model: ModelGraph) -> ServerProcess:
        """Return a stock engine on the bare device, with the context of ``plan``."""
        return self.backend.start(self.backend.stock_spec(plan, model, self.options))

    def stock(self, plan: Plan, model: ModelGraph) -> Completion:
        """Return what the bare device says, with the context of ``plan``."""
        with self.start_stock(plan, model) as engine:
            return self.ask(engine)


@pytest.fixture(scope="session")
def backend(request: pytest.FixtureRequest) -> LlamaCppBackend:
    return LlamaCppBackend(ensure_engine(request.config.getoption("--engine")))


@pytest.fixture(scope="session")
def runner(backend: LlamaCppBackend) -> Runner:
    manager = get_plugin_manager()
    return Runner(backend, choose_device(manager, describe_machine(manager), "emulated"))


@pytest.fixture(scope="session")
def demo() -> ModelGraph:
    return read_model(resolve_model("demo"))


@pytest.fixture(scope="session")
def moe(demo: ModelGraph, tmp_path_factory: pytest.TempPathFactory) -> ModelGraph:
    path = tmp_path_factory.mktemp("moe") / "tiny-moe-q8_0.gguf"
    write_tiny_model("qwen3moe", path, tokenizer_from=demo.files[0])
    return read_model(path)


@pytest.fixture(scope="session")
def tiny(demo: ModelGraph, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ModelGraph]:
    """Return the tiny random model of an architecture; each is made once."""
    directory = tmp_path_factory.mktemp("tiny")

    @cache
    def make(architecture: str) -> ModelGraph:
        path = directory / f"tiny-{architecture}.gguf"
        write_tiny_model(architecture, path, tokenizer_from=demo.files[0])
        return read_model(path)

    return make


@pytest.fixture(scope="session", params=["demo", "moe"])
def model(request: pytest.FixtureRequest) -> ModelGraph:
    found: ModelGraph = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def context() -> PlannedContext:
    return PlannedContext(tokens=512, ubatch_tokens=64)
