"""The adapter as the core meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp import engine as engines
from xlm_llamacpp import plugin
from xlm_llamacpp.backend import LlamaCppBackend
from xlm_plugin.backend import LaunchOptions
from xlm_plugin.errors import EngineError
from xlm_plugin.testing import plugin_manager

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_llamacpp.engine import InstalledEngine
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan


def test_the_plugin_brings_the_adapter() -> None:
    with plugin_manager(plugin) as manager:
        assert [backend.name for backend in manager.backends()] == ["llama.cpp"]


def test_an_engine_runs_a_plan_and_is_controlled(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    backend = LlamaCppBackend(engine)
    with backend.start(backend.launch_spec(plan, model, LaunchOptions())) as server:
        assert backend.running() == [server.pid]
        assert backend.control(server).stats().state == "running"
    assert backend.running() == []


def test_the_stock_reference_is_not_an_engine_of_ours(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    backend = LlamaCppBackend(engine)
    with backend.start(backend.stock_spec(plan, model, LaunchOptions())) as server:
        assert server.complete("Hello", 1).tokens == (11,)
        assert backend.running() == []
        with pytest.raises(EngineError, match="No running engine"):
            backend.control(server)


def test_a_probe_tells_the_engine_and_its_devices(engine: InstalledEngine) -> None:
    probe = LlamaCppBackend(engine).probe()
    assert (probe.engine, probe.version, probe.problem) == ("llama.cpp", "b1", None)
    assert [device.name for device in probe.devices] == ["FAKE0"]
    assert LlamaCppBackend(engine).prepare() == probe


def test_a_probe_without_an_engine_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "find_engine", lambda: None)
    assert LlamaCppBackend().probe().problem == "no engine is built"


def test_a_probe_of_a_broken_engine_says_why(engine: InstalledEngine) -> None:
    engine.server.unlink()
    problem = LlamaCppBackend(engine).probe().problem
    assert problem
    assert "cannot be run" in problem


def test_an_engine_is_built_where_there_is_none(
    engine: InstalledEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "ensure_engine", lambda: engine)
    assert LlamaCppBackend().prepare().version == "b1"


def test_llama_cpp_has_no_store_of_models(tmp_path: Path) -> None:
    assert LlamaCppBackend().read_model(str(tmp_path)) is None
