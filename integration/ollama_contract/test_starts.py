"""Started as Ollama starts engines, chosen models run by their plans, and all others as before."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.ollama_contract.conftest import BUDGET_BYTES, ask
from integration.ollama_contract.discovery import discover, probe
from integration.ollama_contract.layout import OllamaLayout
from integration.ollama_contract.server import Ollama
from xlm_ollama.option import Option
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.ollama_contract.conftest import Said
    from integration.ollama_contract.server import OllamaModel
    from xlm_llamacpp.control import DeviceControl
    from xlm_llamacpp.engine import InstalledEngine

    Enabled = Callable[[OllamaModel, Option], OllamaModel]
    Control = Callable[[int], DeviceControl]

# Each line of the log has two decimals of a MiB.
ROUNDING_BYTES = 0.1 * MIB


def xlm(*arguments: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("xlm"), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


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
    assert not [device for device in discover(layout, bare) if device.folder.name == "xlm"]


def test_a_model_with_an_option_runs_under_its_plan_and_says_what_it_says_without(
    ollama: Ollama, model: OllamaModel, enabled: Enabled, control: Control, stock: Said
) -> None:
    runner = ollama.run(enabled(model, Option(BUDGET_BYTES)))
    planned = ask(runner)
    assert "--lora" not in runner.command_line
    assert runner.log.devices == ["XLM0"]
    assert runner.log.failures == []
    assert planned == stock
    stats = control(runner.pid).stats()
    assert 0 < stats.device_bytes <= stats.budget_bytes == BUDGET_BYTES
    assert stats.link_bytes > 0


def test_a_spoilt_host_copy_changes_what_a_planned_model_says(
    layout: OllamaLayout, environment: dict[str, str], model: OllamaModel, enabled: Enabled, stock: Said
) -> None:
    spoilt = {**environment, "XLM_TEST_CORRUPT": "blk.3.ffn_up.weight"}
    with Ollama(layout, spoilt) as ollama:
        assert ask(ollama.run(enabled(model, Option(BUDGET_BYTES)))) != stock


def test_the_log_tells_ollama_what_the_device_holds_when_the_budget_changes(
    ollama: Ollama, model: OllamaModel, enabled: Enabled, control: Control
) -> None:
    runner = ollama.run(enabled(model, Option(BUDGET_BYTES)))
    device = control(runner.pid)
    ask(runner)
    full = device.stats()
    assert runner.log.vram_bytes == {"EMU0": pytest.approx(full.device_bytes, abs=ROUNDING_BYTES)}
    less = device.set_budget(BUDGET_BYTES - 20 * MIB)
    ask(runner)
    assert less.device_bytes < full.device_bytes
    assert runner.log.vram_bytes == {"EMU0": pytest.approx(less.device_bytes, abs=ROUNDING_BYTES)}


def test_another_budget_loads_the_model_anew(
    ollama: Ollama, model: OllamaModel, enabled: Enabled, control: Control
) -> None:
    first = enabled(model, Option(BUDGET_BYTES))
    pid = ollama.run(first).pid
    assert ollama.run(first).pid == pid
    runner = ollama.run(enabled(model, Option(BUDGET_BYTES + 20 * MIB)))
    assert runner.pid != pid
    assert control(runner.pid).stats().budget_bytes == BUDGET_BYTES + 20 * MIB


def test_models_without_an_option_are_started_with_ollamas_own_arguments(
    ollama: Ollama, model: OllamaModel
) -> None:
    runner = ollama.run(model)
    assert "--device" not in runner.command_line
    assert runner.log.devices == ["EMU0"]
    assert not [line for line in runner.log.lines if line.startswith("xlm:")]


def test_an_adapter_with_tensors_stays_beside_the_option(
    ollama: Ollama, small: OllamaModel, small_adapter: Path, enabled: Enabled
) -> None:
    adapted = replace(small, adapters=(small_adapter,))
    runner = ollama.run(enabled(adapted, Option()))
    assert runner.command_line.count("--lora") == 1
    assert str(small_adapter) in runner.command_line
    planned = ask(runner)
    assert planned == ask(ollama.run(adapted)) != ask(ollama.run(small))


def test_after_install_run_and_uninstall_ollamas_folder_is_byte_for_byte_as_before(
    engine: InstalledEngine,
    tmp_path: Path,
    environment: dict[str, str],
    small: OllamaModel,
    small_stock: Said,
    enabled: Enabled,
) -> None:
    layout = OllamaLayout.make(tmp_path / "ollama", engine)
    before = layout.digests()
    xlm("ollama", "install", "--prefix", str(layout.library))
    with Ollama(layout, environment) as ollama:
        runner = ollama.run(enabled(small, Option()))
        assert runner.log.devices == ["XLM0"]
        assert ask(runner) == small_stock
    xlm("ollama", "uninstall", "--prefix", str(layout.library))
    assert layout.digests() == before


def test_a_real_backend_is_listed_as_if_we_were_not_there(
    vulkan_layout: OllamaLayout, environment: dict[str, str]
) -> None:
    foreign = {name: value for name, value in environment.items() if name != "XLM_EMULATED"}
    foreign.setdefault("GGML_VK_VISIBLE_DEVICES", "0")
    stock = probe(vulkan_layout, vulkan_layout.library / "vulkan", foreign)
    ours = probe(vulkan_layout, vulkan_layout.library / "xlm", foreign)
    if not stock:
        pytest.skip("the Vulkan engine finds no device, not even lavapipe (mesa-vulkan-drivers)")
    assert [(device.name, device.description, device.total_bytes, device.index) for device in ours] == [
        (device.name, device.description, device.total_bytes, device.index) for device in stock
    ]
    assert discover(vulkan_layout, foreign)[0].folder.name == "xlm"
