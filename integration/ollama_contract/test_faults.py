"""Where anything is wrong a model runs as it does without xlm, and the log says why."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from integration.ollama_contract.conftest import ask, install
from integration.ollama_contract.discovery import discover
from integration.ollama_contract.layout import OllamaLayout
from integration.ollama_contract.runner import LoadError
from integration.ollama_contract.server import Ollama
from xlm_ollama.option import Option
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.ollama_contract.conftest import Said
    from integration.ollama_contract.runner import Runner
    from integration.ollama_contract.server import OllamaModel
    from xlm_llamacpp.control import DeviceControl
    from xlm_llamacpp.engine import InstalledEngine

    Enabled = Callable[[OllamaModel, Option], OllamaModel]
    Control = Callable[[int], DeviceControl]


def check_stock(runner: Runner, stock: Said, reason: str) -> None:
    """Check that the engine has no plan, says why, alarms nobody, and answers as without xlm."""
    assert runner.log.devices == ["EMU0"]
    assert runner.log.failures == []
    said = [line for line in runner.log.lines if line.startswith("xlm: this model runs without its plan")]
    assert len(said) == 1
    assert reason in said[0]
    assert ask(runner) == stock


def set_planner(layout: OllamaLayout, script: str) -> None:
    """Let a shell script be the planner of ``layout``."""
    planner = layout.root / "planner"
    planner.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    planner.chmod(planner.stat().st_mode | stat.S_IXUSR)
    change_settings(layout, planner=[str(planner)])


def change_settings(layout: OllamaLayout, **changes: object) -> None:
    """Change what the installer has written for the library."""
    path = layout.library / "xlm" / "xlm.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | changes), encoding="utf-8")


def planned_at(device: str) -> str:
    """Return the script of a planner whose plan is on no disk."""
    environment = {"XLM_PLAN": "/nowhere", "XLM_DEVICE": device}
    answer = {"xlm": 1, "arguments": ["--port", "1"], "environment": environment}
    return f"echo '{json.dumps(answer)}'"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 3", "failed"),
        ("echo '{'", "cannot be read"),
        ("kill -KILL $$", "failed"),
        ("""echo '{"xlm": 2, "stock": ""}'""", "another protocol"),
        ("""echo 'MemoryError: out of memory' >&2; echo '{"xlm": 1, "stock": "error: no"}'""", "no"),
        (planned_at("EMU0"), "/nowhere"),
        (planned_at("CUDA7"), "no device 'CUDA7'"),
    ],
    ids=[
        "fails",
        "talks nonsense",
        "is killed",
        "is of another time",
        "alarms",
        "names a plan that is gone",
        "names a device that is gone",
    ],
)
def test_a_planner_that_is_out_of_order(
    fresh: OllamaLayout,
    environment: dict[str, str],
    small: OllamaModel,
    small_stock: Said,
    enabled: Enabled,
    script: str,
    reason: str,
) -> None:
    set_planner(fresh, script)
    with Ollama(fresh, environment) as ollama:
        check_stock(ollama.run(enabled(small, Option())), small_stock, reason)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"planner": ["/nowhere/python"]}, "cannot be started"),
        ({"planner": []}, "no command"),
        ({"ggml_version": "0.0.1"}, "ggml is"),
    ],
    ids=["its Python is gone", "it has no planner", "it is for another ggml"],
)
def test_an_install_that_does_not_fit(
    fresh: OllamaLayout,
    environment: dict[str, str],
    small: OllamaModel,
    small_stock: Said,
    enabled: Enabled,
    changes: dict[str, object],
    reason: str,
) -> None:
    change_settings(fresh, **changes)
    with Ollama(fresh, environment) as ollama:
        check_stock(ollama.run(enabled(small, Option())), small_stock, reason)


def test_an_install_whose_settings_are_damaged(
    fresh: OllamaLayout,
    environment: dict[str, str],
    small: OllamaModel,
    small_stock: Said,
    enabled: Enabled,
) -> None:
    (fresh.library / "xlm" / "xlm.json").write_text("{", encoding="utf-8")
    with Ollama(fresh, environment) as ollama:
        check_stock(ollama.run(enabled(small, Option())), small_stock, "cannot be read")


def test_a_library_that_is_damaged_is_no_device_to_ollama(
    fresh: OllamaLayout, environment: dict[str, str]
) -> None:
    library = fresh.library / "xlm" / "libggml-xlm.so"
    library.write_bytes(library.read_bytes()[:1000])
    assert discover(fresh, environment) == []


def test_a_budget_that_is_too_small(
    ollama: Ollama, small: OllamaModel, small_stock: Said, enabled: Enabled
) -> None:
    check_stock(ollama.run(enabled(small, Option(budget_bytes=64 * 1024))), small_stock, "budget")


@pytest.mark.parametrize("kept_bytes", [100, 200])
def test_an_option_that_is_damaged(
    ollama: Ollama, small: OllamaModel, small_stock: Said, enabled: Enabled, kept_bytes: int
) -> None:
    damaged = enabled(small, Option())
    (path,) = damaged.adapters
    path.write_bytes(path.read_bytes()[:kept_bytes])
    try:
        runner = ollama.run(damaged)
    except LoadError as refusal:
        # What does not speak of xlm any more is Ollama's own matter.
        assert b"xlm." not in path.read_bytes()
        assert str(refusal)
    else:
        check_stock(runner, small_stock, "damaged")


def test_arguments_of_a_later_ollama(
    ollama: Ollama, small: OllamaModel, small_stock: Said, enabled: Enabled
) -> None:
    later = replace(enabled(small, Option()), later=("--metrics",))
    check_stock(ollama.run(later), small_stock, "--metrics")


def test_num_gpu_0_keeps_a_model_on_the_cpu(ollama: Ollama, small: OllamaModel, enabled: Enabled) -> None:
    runner = ollama.run(replace(enabled(small, Option()), num_gpu=0))
    assert runner.log.vram_bytes == {}
    assert ask(runner).tokens


def test_folders_that_cannot_be_written_to(
    layout: OllamaLayout,
    environment: dict[str, str],
    small: OllamaModel,
    small_stock: Said,
    enabled: Enabled,
    tmp_path: Path,
) -> None:
    # A file where a folder should be refuses the superuser too.
    blocked = tmp_path / "file"
    blocked.touch()
    with Ollama(layout, environment | {"XLM_CACHE": str(blocked / "cache")}) as ollama:
        check_stock(ollama.run(enabled(small, Option())), small_stock, "cannot")


def test_kept_plans_that_are_damaged_are_made_anew(
    ollama: Ollama, environment: dict[str, str], small: OllamaModel, enabled: Enabled
) -> None:
    option = Option(budget_bytes=40 * MIB)
    ollama.run(enabled(small, option))
    plans = list((Path(environment["XLM_CACHE"]) / "ollama" / "plans").glob("*.json"))
    assert plans
    for plan in plans:
        plan.write_text("{", encoding="utf-8")
    assert ollama.run(enabled(small, option)).log.devices == ["XLM0"]


def test_without_an_accelerator_the_option_is_an_empty_adapter(
    layout: OllamaLayout, environment: dict[str, str], small: OllamaModel, enabled: Enabled
) -> None:
    bare = {name: value for name, value in environment.items() if name != "XLM_EMULATED"}
    with Ollama(layout, bare | {"GGML_VK_VISIBLE_DEVICES": ""}) as ollama:
        without = ask(ollama.run(small))
        assert ask(ollama.run(enabled(small, Option()))) == without


def test_an_upgrade_of_ollama_leaves_running_engines_and_takes_xlm_out(
    engine: InstalledEngine,
    fresh: OllamaLayout,
    environment: dict[str, str],
    small: OllamaModel,
    small_stock: Said,
    enabled: Enabled,
) -> None:
    with Ollama(fresh, environment) as ollama:
        runner = ollama.run(enabled(small, Option()))
        shutil.rmtree(fresh.root)
        OllamaLayout.make(fresh.root, engine)
        assert ask(runner) == small_stock
    assert discover(fresh, environment) == []
    install(fresh, engine)
    with Ollama(fresh, environment) as ollama:
        assert ollama.run(enabled(small, Option())).log.devices == ["XLM0"]


def test_two_models_on_one_blob_each_run_with_their_own_option(
    ollama: Ollama, small: OllamaModel, enabled: Enabled, control: Control
) -> None:
    models = [enabled(small, Option(budget_bytes=size * MIB)) for size in (30, 35)]
    for model, size in zip(models * 2, (30, 35, 30, 35), strict=True):
        assert control(ollama.run(model).pid).stats().budget_bytes == size * MIB


@pytest.mark.parametrize("crash", [signal.SIGSEGV, signal.SIGABRT])
def test_an_engine_that_crashes_under_its_plan_goes_on_without(
    ollama: Ollama, small: OllamaModel, small_stock: Said, enabled: Enabled, crash: signal.Signals
) -> None:
    runner = ollama.run(enabled(small, Option()))
    os.kill(runner.pid, crash)
    runner.wait_for_line("the engine crashed under its plan")
    runner.wait_until_ready()
    assert "XLM0" not in runner.command_line
    assert ask(runner) == small_stock


def test_an_engine_that_is_killed_while_it_plans_takes_the_planner_with_it(
    fresh: OllamaLayout, environment: dict[str, str], small: OllamaModel, enabled: Enabled
) -> None:
    set_planner(fresh, "echo planning >&2; sleep 60; true")
    with Ollama(fresh, environment) as ollama:
        runner = ollama.start(enabled(small, Option()))
        runner.wait_for_line("planning")
        (planner,) = psutil.Process(runner.pid).children()
        runner.close()
        planner.wait(10)
