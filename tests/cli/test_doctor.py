"""``xlm doctor``: every check, what it says, and whether models can run."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from xlm_plugin.cli import _checks as checks
from xlm_plugin.errors import XlmError
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.machine.files import SystemFiles
from xlm_plugin.plugins import PluginManager
from xlm_plugin.testing import FakeBackend, FakePlugin, fake_device, fake_host, fake_machine, plugin_manager
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from xlm_plugin.cli._check_list import Check
    from xlm_plugin.machine.document import Device

NVIDIA_GPU = {"vendor": "0x10de", "class": "0x030000", "power/runtime_status": "active"}


def gpu_files(root: Path, **changes: str) -> SystemFiles:
    for name, content in {**NVIDIA_GPU, **changes}.items():
        path = root / "sys/bus/pci/devices/0000:01:00.0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return SystemFiles(root)


def said(check: Check) -> tuple[str, str]:
    return check.status, f"{check.found} | {check.advice}"


def test_a_machine_that_can_run_models_exits_0(invoke: Callable[..., Result]) -> None:
    result = invoke("doctor", plugins=(FakePlugin(),))
    assert result.exit_code == 0
    for name in ("device", "engine fake", "memory", "memlock", "threads", "cache", "plugins"):
        assert f"ok  {name}" in result.stdout
    assert result.stderr == ""


def test_a_machine_that_cannot_exits_1_and_says_what_to_do(invoke: Callable[..., Result]) -> None:
    broken = FakeBackend(problem="no engine is built")
    result = invoke("doctor", plugins=(FakePlugin(backends=[broken]),))
    assert result.exit_code == 1
    assert "fail  engine fake  no engine is built" in result.stdout
    assert "xlm engine build" in result.stdout


def test_the_checks_are_json_on_request(invoke: Callable[..., Result]) -> None:
    document = json.loads(invoke("doctor", "--json", plugins=(FakePlugin(),)).stdout)
    assert document["ok"] is True
    assert document["checks"][0].keys() == {"name", "status", "found", "advice"}
    assert document["checks"][0]["name"] == "device"


def test_without_plugins_everything_that_is_missing_is_said(invoke: Callable[..., Result]) -> None:
    result = invoke("doctor", "--json")
    failed = [check["name"] for check in json.loads(result.stdout)["checks"] if check["status"] == "fail"]
    assert (result.exit_code, failed) == (1, ["machine", "engine"])


def test_a_machine_that_cannot_be_described_fails(invoke: Callable[..., Result]) -> None:
    class NoProc:
        @hookimpl
        def xlm_describe_machine(self) -> None:
            raise XlmError("The memory of this machine cannot be read.", "Mount /proc.")

    result = invoke("doctor", plugins=(FakePlugin(), NoProc()))
    assert result.exit_code == 1
    assert "fail  machine      The memory of this machine cannot be read." in result.stdout


def test_without_an_accelerator_the_emulated_device_is_said_to_be_used() -> None:
    status, text = said(checks.check_device(None))
    assert status == "warn"
    assert "the emulated device is used" in text


def test_a_device_shows_its_free_memory() -> None:
    device = fake_device(name="CUDA0", memory_bytes=12 * GIB, free_bytes=11 * GIB)
    assert said(checks.check_device(device)) == (
        "ok",
        "CUDA0: a device for tests, 11.00 GiB of 12.00 GiB free | ",
    )


def test_a_device_that_shares_memory_says_so() -> None:
    assert "shares the host's memory" in checks.check_device(fake_device(unified=True)).found


def test_a_full_device_is_a_warning() -> None:
    status, text = said(checks.check_device(fake_device(free_bytes=100 * MIB)))
    assert status == "warn"
    assert "Close what uses it" in text


def test_c46_a_sleeping_device_is_shown_as_such() -> None:
    asleep = replace(fake_device(memory_bytes=0), asleep=True)
    status, text = said(checks.check_device(asleep))
    assert status == "ok"
    assert "not woken" in text
    assert "--vram" in text


def no_nvml() -> Any:
    raise OSError("NVML Shared Library Not Found")


def nvml(version: str) -> Any:
    def not_there(*_: object) -> None:
        raise LookupError("GPU is lost")

    return SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlSystemGetDriverVersion=lambda: version,
        nvmlDeviceGetHandleByIndex=not_there,
    )


def test_a_driver_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    (check,) = checks.check_nvidia_driver(gpu_files(tmp_path), no_nvml)
    assert said(check)[0] == "warn"
    assert "NVIDIA: NVML Shared Library Not Found" in check.found


def test_a_driver_that_answers_with_an_error_keeps_its_version(tmp_path: Path) -> None:
    (check,) = checks.check_nvidia_driver(gpu_files(tmp_path), lambda: nvml("570.1"))
    assert check.found == "NVIDIA 570.1: GPU is lost"


def test_a_driver_that_answers_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from xlm_plugin.machine import nvidia

    monkeypatch.setattr(nvidia, "read_nvidia", lambda *_: nvidia.NvidiaReading("570.1", "Fast GPU", 1, 1))
    (check,) = checks.check_nvidia_driver(gpu_files(tmp_path), no_nvml)
    assert said(check) == ("ok", "NVIDIA 570.1 | ")


def test_c46_the_driver_of_a_sleeping_gpu_is_not_asked(tmp_path: Path) -> None:
    files = gpu_files(tmp_path, **{"power/runtime_status": "suspended"})
    assert list(checks.check_nvidia_driver(files, no_nvml)) == []


def test_without_an_nvidia_gpu_there_is_no_driver_to_check(tmp_path: Path) -> None:
    assert list(checks.check_nvidia_driver(SystemFiles(tmp_path), no_nvml)) == []


def engines(*backends: object, device: Device | None = None) -> list[Check]:
    with plugin_manager(FakePlugin(backends=backends)) as manager:  # type: ignore[arg-type]
        return list(checks.check_engines(manager, device))


def test_an_engine_shows_the_devices_that_it_finds() -> None:
    (check,) = engines(FakeBackend(fake_device(name="CUDA0")))
    assert said(check) == ("ok", "1, finds CUDA0 | ")


def test_an_engine_that_does_not_find_the_device_is_a_warning() -> None:
    backend = FakeBackend(fake_device(name="Vulkan0"))
    (check,) = engines(backend, device=fake_device(name="CUDA0"))
    assert said(check) == ("warn", "1, finds Vulkan0 | Build an engine for CUDA0 with 'xlm engine build'.")


def test_c46_an_engine_is_not_asked_where_that_would_wake_a_device() -> None:
    class Waking(FakeBackend):
        def probe(self) -> Any:
            raise AssertionError

    (check,) = engines(Waking(), device=replace(fake_device(name="CUDA0"), asleep=True))
    assert said(check) == ("ok", "not asked, which would wake CUDA0 | ")


def test_one_engine_that_works_is_enough() -> None:
    found = engines(FakeBackend(problem="it is too old"), FakeBackend())
    assert [check.status for check in found] == ["warn", "ok"]


def test_an_engine_whose_probe_raises_has_that_as_its_problem() -> None:
    class Raising(FakeBackend):
        def probe(self) -> Any:
            raise RuntimeError

    (check,) = engines(Raising())
    assert said(check) == ("fail", "RuntimeError | Run 'xlm engine build'.")


def test_little_host_memory_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemAvailable: 1000 kB\n")
    check = checks.check_memory(fake_host(available_bytes=GIB), SystemFiles(tmp_path))
    assert said(check)[0] == "warn"
    assert "1.00 GiB of 16.00 GiB available" in check.found


def test_the_limit_of_a_control_group_is_shown(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable: 9000000 kB\n")
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/memory.max").write_text(str(4 * GIB))
    check = checks.check_memory(fake_host(), SystemFiles(tmp_path))
    assert said(check) == ("ok", "16.00 GiB of 16.00 GiB available, the control group allows 4.00 GiB | ")


@pytest.mark.parametrize(
    ("limit_bytes", "accelerator", "status"),
    [(None, True, "ok"), (8 * MIB, False, "ok"), (64 * GIB, True, "ok"), (8 * MIB, True, "warn")],
)
def test_a_memlock_limit_matters_where_there_is_an_accelerator(
    limit_bytes: int | None, accelerator: bool, status: str
) -> None:
    machine = fake_machine(host=fake_host(memlock_bytes=limit_bytes), accelerator=accelerator)
    assert checks.check_memlock(machine).status == status


def test_threads_show_what_bounds_them(tmp_path: Path) -> None:
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/cpu.max").write_text("250000 100000")
    found = checks.check_threads(fake_host(threads=1), SystemFiles(tmp_path)).found
    assert found == "1 on a processor for tests: 1 CPUs allowed, 1 fast cores, a quota of 2.5 CPUs"


def test_c33_wsl_is_a_warning() -> None:
    (check,) = checks.check_wsl(replace(fake_host(), wsl=True))
    assert check.status == "warn"
    assert list(checks.check_wsl(fake_host())) == []


def test_a_cache_folder_that_can_be_made_is_well(tmp_path: Path) -> None:
    check = checks.check_cache(tmp_path / "new" / "cache")
    assert check.status == "ok"
    assert not (tmp_path / "new").exists()


def test_a_cache_folder_that_is_a_file_fails(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("")
    status, text = said(checks.check_cache(tmp_path / "cache"))
    assert status == "fail"
    assert "XLM_CACHE" in text


def test_a_cache_folder_that_may_not_be_written_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert checks.check_cache(tmp_path).status == "fail"


def test_a_disk_that_is_nearly_full_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=GIB))
    assert checks.check_cache(tmp_path).status == "warn"


def test_a_broken_plugin_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLM_LOAD_PLUGINS", "elsewhere")
    manager = PluginManager()
    manager.load_installed()
    all_well, broken = checks.check_plugins(manager)
    assert said(all_well) == ("ok", "none | ")
    assert (broken.name, broken.status) == ("plugin elsewhere", "warn")
