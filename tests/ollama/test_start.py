"""What the planner answers to a start: the same words that the device in Ollama's folder speaks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.ollama.conftest import adapter_bytes
from xlm_ollama.install import planner_command
from xlm_ollama.option import Option, write_option
from xlm_ollama.start import answer
from xlm_plugin.plan.document import Plan
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Sequence

DEVICE = {"name": "CUDA0", "description": "a GPU", "backend": "CUDA"}
EMULATED = "memory_bytes=1073741824,link_bytes_per_s=16000000000,link_latency_s=0"


def devices(*free_bytes: int) -> dict[str, str]:
    found = [
        {**DEVICE, "name": f"CUDA{number}", "free_bytes": size, "total_bytes": 8 * GIB}
        for number, size in enumerate(free_bytes)
    ]
    return {"XLM_START_DEVICES": json.dumps(found)}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XLM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "cache" / "ollama" / "plans"


@pytest.fixture
def model(tmp_path: Path, model_bytes: bytes, cache: Path) -> Path:
    assert not cache.exists()
    path = tmp_path / "sha256-model"
    path.write_bytes(model_bytes)
    return path


def option(folder: Path, **values: Any) -> Path:
    path = folder / "sha256-option"
    write_option(Option(**{"budget_bytes": GIB, **values}), "llama", path)
    return path


def arguments(model: Path, *adapters: Path, more: Sequence[str] = ()) -> list[str]:
    loras = [word for adapter in adapters for word in ("--lora", str(adapter))]
    return ["--model", str(model), "--port", "4242", "-c", "512", "-np", "1", *loras, *more]


def plan_of(answered: dict[str, Any]) -> Plan:
    return Plan.read(Path(answered["environment"]["XLM_PLAN"]))


def test_a_start_with_an_option_gets_a_plan_within_its_budget(model: Path, tmp_path: Path) -> None:
    answered: Any = answer(arguments(model, option(tmp_path)), devices(8 * GIB))
    assert answered["xlm"] == 1
    assert answered["environment"]["XLM_DEVICE"] == "CUDA0"
    plan = plan_of(answered)
    assert plan.budget_bytes == GIB
    assert (plan.device, plan.context.tokens) == ("CUDA0", 512)
    assert answered["arguments"][:2] == ["--model", str(model)]
    assert "--lora" not in answered["arguments"]


def test_the_plan_is_made_once(
    model: Path, tmp_path: Path, cache: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        answer(arguments(model, option(tmp_path)), devices(8 * GIB))
    assert capsys.readouterr().err.count("planning tiny for 1.00 GiB of CUDA0") == 1
    assert len(list(cache.glob("*.json"))) == 1


def test_other_options_of_one_model_get_other_plans(model: Path, tmp_path: Path, cache: Path) -> None:
    for budget_bytes in (GIB, 2 * GIB):
        answer(arguments(model, option(tmp_path, budget_bytes=budget_bytes)), devices(8 * GIB))
    assert len(list(cache.glob("*.json"))) == 2


def test_a_damaged_plan_is_made_anew(model: Path, tmp_path: Path, cache: Path) -> None:
    answer(arguments(model, option(tmp_path)), devices(8 * GIB))
    (kept,) = cache.glob("*.json")
    kept.write_text("{")
    assert plan_of(answer(arguments(model, option(tmp_path)), devices(8 * GIB))).budget_bytes == GIB


def test_the_budget_is_no_more_than_what_is_free(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answered = answer(arguments(model, option(tmp_path, budget_bytes=6 * GIB)), devices(2 * GIB))
    assert plan_of(answered).budget_bytes == 2 * GIB
    assert "CUDA0 has 2.00 GiB free, less than the budget of 6.00 GiB" in capsys.readouterr().err


def test_auto_takes_what_is_free_less_a_margin_in_steps(model: Path, tmp_path: Path, cache: Path) -> None:
    budgets = {
        plan_of(
            answer(arguments(model, option(tmp_path, budget_bytes=None)), devices(8 * GIB - change))
        ).budget_bytes
        for change in (MIB, 2 * MIB)
    }
    assert budgets == {7 * GIB - 64 * MIB}
    assert len(list(cache.glob("*.json"))) == 1


def test_the_device_is_the_one_that_main_gpu_names_or_else_the_freest(model: Path, tmp_path: Path) -> None:
    chosen = arguments(model, option(tmp_path), more=["--main-gpu", "0"])
    assert plan_of(answer(chosen, devices(2 * GIB, 4 * GIB))).device == "CUDA0"
    assert plan_of(answer(arguments(model, option(tmp_path)), devices(2 * GIB, 4 * GIB))).device == "CUDA1"


def test_the_models_own_adapters_are_left_room(model: Path, tmp_path: Path) -> None:
    own = tmp_path / "sha256-own"
    own.write_bytes(adapter_bytes(tmp_path))
    answered: Any = answer(arguments(model, own, option(tmp_path)), devices(8 * GIB))
    plan = plan_of(answered)
    assert plan.budget_bytes - plan.ledger.total_bytes >= own.stat().st_size
    assert str(own) in answered["arguments"]


def test_an_emulated_device_is_planned_as_one(model: Path, tmp_path: Path) -> None:
    environment = devices(GIB) | {"XLM_EMULATED": EMULATED}
    answered: Any = answer(arguments(model, option(tmp_path)), environment)
    assert plan_of(answered).emulated
    assert "--no-repack" in answered["arguments"]


def test_settings_of_the_engine_are_taken_away(model: Path, tmp_path: Path) -> None:
    environment = devices(8 * GIB) | {"LLAMA_ARG_OVERRIDE_TENSOR": "exps=CPU"}
    answered: Any = answer(arguments(model, option(tmp_path)), environment)
    assert answered["environment"]["LLAMA_ARG_OVERRIDE_TENSOR"] == ""


def test_the_engine_is_recorded_so_that_other_commands_find_it(model: Path, tmp_path: Path) -> None:
    from xlm_llamacpp.runtime import running_engines

    answer(arguments(model, option(tmp_path, base="qwen3:30b")), devices(8 * GIB))
    (engine,) = (found for found in running_engines() if found.directory.is_relative_to(tmp_path))
    # The engine is the process that asks.
    assert engine.record.pid == os.getppid()
    assert engine.record.url == "http://127.0.0.1:4242"
    assert engine.record.name == "ollama:qwen3:30b"
    assert psutil.pid_exists(engine.record.pid)


@pytest.mark.parametrize(
    ("more", "environment", "reason"),
    [
        ([], {}, "Ollama finds no accelerator."),
        (["-ngl", "0"], devices(GIB), "The model has num_gpu 0, which keeps it on the CPU."),
        (["--main-gpu", "3"], devices(GIB), "The model has main_gpu 3, and there are 1 devices."),
        (["--new-thing"], devices(GIB), "in a way that this xlm does not know"),
        ([], devices(MIB), "more than the budget of 1.00 MiB"),
        ([], {"XLM_START_DEVICES": "{"}, "XLM_START_DEVICES is no list of devices."),
    ],
)
def test_a_start_that_cannot_be_planned_is_stock_with_a_reason(
    model: Path, tmp_path: Path, more: list[str], environment: dict[str, str], reason: str
) -> None:
    answered = answer(arguments(model, option(tmp_path), more=more), environment)
    assert set(answered) == {"xlm", "stock"}
    assert reason in str(answered["stock"])


def test_a_damaged_option_is_stock_with_a_reason(model: Path, tmp_path: Path) -> None:
    path = option(tmp_path)
    path.write_bytes(path.read_bytes()[:-20])
    assert "The option is damaged" in str(answer(arguments(model, path), devices(GIB))["stock"])


def test_a_model_that_is_gone_is_stock_with_a_reason(model: Path, tmp_path: Path) -> None:
    model.unlink()
    answered = answer(arguments(model, option(tmp_path)), devices(GIB))
    assert "cannot be read: No such file" in str(answered["stock"])


def test_the_installed_command_answers_on_stdout(model: Path, tmp_path: Path) -> None:
    result = subprocess.run(
        [*planner_command(), *arguments(model, option(tmp_path))],
        env={**os.environ, **devices(8 * GIB)},
        capture_output=True,
        text=True,
        check=True,
    )
    answered = json.loads(result.stdout)
    assert plan_of(answered).budget_bytes == GIB
    assert result.stderr == "planning tiny for 1.00 GiB of CUDA0\n"
