"""``ollama:NAME`` where a model is run, served and planned, with the server down."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.engines import Recording
from xlm_hooks import plugin as hooks
from xlm_ollama import plugin
from xlm_ollama.option import Option, write_option
from xlm_ollama.store import find_model
from xlm_plugin.testing import FakePlugin, fake_machine
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.ollama.fake_ollama import ModelStore

    Run = Callable[..., Result]


@pytest.fixture
def backend() -> Recording:
    return Recording()


@pytest.fixture
def run(invoke: Run, backend: Recording) -> Run:
    plugins = (hooks, plugin, FakePlugin([backend], fake_machine()))
    return lambda name, vram: invoke("run", name, "-p", "a", "--vram", vram, plugins=plugins)


@pytest.mark.usefixtures("store")
def test_a_model_runs_with_its_adapter_and_its_projector_on_the_cpu(run: Run, backend: Recording) -> None:
    result = run("ollama:someone/rich:7b", "1GiB")
    assert result.exit_code == 0, result.output
    model = find_model("someone/rich:7b")
    (adapter,), (projector,) = model.adapters, model.projectors
    plan, options = backend.launched[0]
    assert options.extra_arguments == (
        *("--lora", str(adapter), "--mmproj", str(projector), "--no-mmproj-offload"),
    )
    assert plan.budget_bytes == GIB
    assert plan.budget_bytes - plan.ledger.total_bytes >= adapter.stat().st_size


def test_an_option_is_no_adapter(run: Run, backend: Recording, store: ModelStore, tmp_path: Path) -> None:
    write_option(Option(GIB), "llama", tmp_path / "option")
    layers = store.layers("tiny")
    assert layers is not None
    store.write("tiny", [*layers, store.add_layer("adapter", (tmp_path / "option").read_bytes())])
    assert run("ollama:tiny", "1GiB").exit_code == 0
    assert backend.launched[0][1].extra_arguments == ()


def test_adapters_larger_than_the_budget_are_refused(run: Run, store: ModelStore) -> None:
    find_model("someone/rich:7b").adapters[0].write_bytes(bytes(500 << 20))
    result = run("ollama:someone/rich:7b", "499MiB")
    assert result.exit_code == 3
    assert "The model's adapters take 500.00 MiB, and the budget is 499.00 MiB." in result.output
    assert store.layers("someone/rich:7b")
