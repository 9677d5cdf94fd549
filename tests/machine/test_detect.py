"""Which device a machine has, and where what is known about it comes from."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from xlm_plugin.machine.detect import Sources, detect_machine
from xlm_plugin.machine.document import Device
from xlm_plugin.machine.pci import AMD, INTEL, NVIDIA
from xlm_plugin.testing import fake_device
from xlm_plugin.units import GIB, MIB

from .fake_nvml import FakeNvml, NVMLError, NVMLError_NotSupported
from .trees import HOST, gpu, meminfo

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .conftest import System

ASPEED = 0x1A03
NO_MEMORY_INFO = {"nvmlDeviceGetMemoryInfo": NVMLError_NotSupported("Not Supported")}
APU_METRICS = b"\x00\x00\x02\x03"
CARD_METRICS = b"\x00\x00\x01\x03"


def detect(
    system: System,
    files: Mapping[str, str | bytes],
    *,
    nvml: FakeNvml | None = None,
    engine_devices: Iterable[Device] | None = None,
) -> Device | None:
    """Return the device; without ``nvml`` there is no NVIDIA driver, without a list no engine is asked."""

    def load_nvml() -> Any:
        if nvml is None:
            raise NVMLError("NVML Shared Library Not Found")
        return nvml

    def ask_engines() -> Iterable[Device]:
        assert engine_devices is not None, "no engine should be asked"
        return engine_devices

    sources = Sources(system({**HOST, **files}), {}, load_nvml, ask_engines)
    return detect_machine(sources).device


def amd(vram_bytes: int, gtt_bytes: int, metrics: bytes, address: str = "0000:03:00.0") -> dict[str, Any]:
    return gpu(
        AMD,
        address,
        mem_info_vram_total=str(vram_bytes),
        mem_info_vram_used=str(100 * MIB),
        mem_info_gtt_total=str(gtt_bytes),
        mem_info_gtt_used=str(200 * MIB),
        gpu_metrics=metrics,
    )


def test_a_machine_without_gpus_has_no_device_and_asks_no_engine(system: System) -> None:
    assert detect(system, {}) is None


def test_a_display_of_a_server_board_is_no_device(system: System) -> None:
    assert detect(system, gpu(ASPEED)) is None


def test_something_else_of_a_gpu_vendor_is_no_device(system: System) -> None:
    sound = {**gpu(NVIDIA), "/sys/bus/pci/devices/0000:01:00.0/class": "0x040300\n"}
    assert detect(system, sound) is None


def test_an_nvidia_gpu_is_described_by_its_driver(system: System) -> None:
    device = detect(system, gpu(NVIDIA), nvml=FakeNvml())
    assert device == Device("CUDA0", "Fast GPU", 12 * GIB, 11 * GIB)


def test_c33_a_gpu_that_sysfs_does_not_show_is_found_by_its_driver(system: System) -> None:
    wsl = {"/proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2\n"}
    device = detect(system, wsl, nvml=FakeNvml())
    assert device
    assert device.name == "CUDA0"


def test_c33_wsl_is_told(system: System) -> None:
    files = system({**HOST, "/proc/sys/kernel/osrelease": "5.15.90.1-microsoft-standard-WSL2\n"})
    assert detect_machine(Sources(files, {}, FakeNvml)).host.wsl


def test_c35_memory_that_nvml_does_not_tell_comes_from_the_engine(system: System) -> None:
    of_engine = fake_device(name="CUDA0", memory_bytes=119 * GIB, free_bytes=100 * GIB)
    others = [fake_device(name="Vulkan0"), of_engine]
    nvml = FakeNvml(refusals=NO_MEMORY_INFO)
    assert detect(system, gpu(NVIDIA), nvml=nvml, engine_devices=others) == replace(of_engine, unified=True)


def test_c35_without_an_engine_it_is_the_hosts(system: System) -> None:
    nvml = FakeNvml(refusals=NO_MEMORY_INFO)
    device = detect(system, gpu(NVIDIA), nvml=nvml, engine_devices=[])
    assert device == Device("CUDA0", "Fast GPU", 32 * GIB, 24 * GIB, unified=True)


def test_c36_memory_that_may_not_be_read_is_the_engines_to_tell(system: System) -> None:
    of_engine = fake_device(name="CUDA0", memory_bytes=16 * GIB)
    nvml = FakeNvml(refusals={"nvmlDeviceGetMemoryInfo": NVMLError("Insufficient Permissions")})
    assert detect(system, gpu(NVIDIA), nvml=nvml, engine_devices=[of_engine]) == of_engine


def test_c36_memory_that_may_not_be_read_is_not_taken_for_the_hosts(system: System) -> None:
    nvml = FakeNvml(refusals={"nvmlDeviceGetMemoryInfo": NVMLError("Insufficient Permissions")})
    assert detect(system, gpu(NVIDIA), nvml=nvml, engine_devices=[]) is None


def test_c46_a_suspended_gpu_is_not_woken(system: System) -> None:
    nvml = FakeNvml()
    device = detect(system, gpu(NVIDIA, suspended=True), nvml=nvml)
    assert device == Device("CUDA0", "NVIDIA GPU at 0000:01:00.0", 0, 0, asleep=True)
    assert nvml.asked == []


def test_c46_a_suspended_gpu_is_not_woken_for_an_integrated_one(system: System) -> None:
    files = {**gpu(INTEL, "0000:00:02.0"), **gpu(NVIDIA, suspended=True)}
    device = detect(system, files, nvml=FakeNvml())
    assert device
    assert (device.name, device.asleep) == ("CUDA0", True)


@pytest.mark.parametrize(("vendor", "name"), [(AMD, "ROCm0"), (INTEL, "Vulkan0")])
def test_c46_other_vendors_gpus_sleep_on_too(system: System, vendor: int, name: str) -> None:
    device = detect(system, gpu(vendor, suspended=True))
    assert device
    assert (device.name, device.asleep) == (name, True)


def test_an_amd_card_is_described_by_sysfs(system: System) -> None:
    device = detect(system, amd(16 * GIB, 16 * GIB, CARD_METRICS), engine_devices=[])
    assert device == Device("ROCm0", "AMD GPU at 0000:03:00.0", 16 * GIB, 16 * GIB - 100 * MIB)


def test_an_amd_card_has_the_name_that_the_engine_gives_it(system: System) -> None:
    software = replace(fake_device(name="Vulkan0"), description="llvmpipe (LLVM 15.0.6, 256 bits)")
    found = [software, fake_device(name="BLAS", memory_bytes=0), fake_device(name="Vulkan1")]
    device = detect(system, amd(16 * GIB, 16 * GIB, CARD_METRICS), engine_devices=found)
    assert device
    assert device.name == "Vulkan1"


def test_an_amd_card_goes_before_the_gpu_inside_the_cpu(system: System) -> None:
    files = {**amd(8 * GIB, 8 * GIB, CARD_METRICS), **amd(2 * GIB, 15 * GIB, APU_METRICS, "0000:7a:00.0")}
    device = detect(system, files, engine_devices=[])
    assert device
    assert (device.memory_bytes, device.unified) == (8 * GIB, False)


@pytest.mark.parametrize(
    ("carve_out", "gtt", "host", "available", "pool", "free"),
    [
        (512 * MIB, 108 * GIB, 128 * GIB, 100 * GIB, 108 * GIB, 100 * GIB),
        (8 * GIB, 124 * GIB, 120 * GIB, 110 * GIB, 120 * GIB, 110 * GIB),
        (96 * GIB, 15 * GIB, 30 * GIB, 25 * GIB, 96 * GIB, 96 * GIB - 100 * MIB),
    ],
)
def test_c41_a_gpu_inside_the_cpu_has_the_larger_pool_and_never_the_sum(
    system: System, carve_out: int, gtt: int, host: int, available: int, pool: int, free: int
) -> None:
    files = meminfo(host, available) | amd(carve_out, gtt, APU_METRICS)
    device = detect(system, files, engine_devices=[])
    assert device
    assert (device.memory_bytes, device.free_bytes, device.unified) == (pool, free, True)


def test_a_gpu_that_its_driver_does_not_describe_is_the_engines_to_tell(system: System) -> None:
    card = fake_device(name="Vulkan0")
    assert detect(system, gpu(AMD), engine_devices=[card]) == card


def test_a_gpu_that_nobody_describes_is_no_device(system: System) -> None:
    assert detect(system, gpu(INTEL), engine_devices=[]) is None


def test_intels_gpu_inside_the_cpu_shares_what_the_host_has_left(system: System) -> None:
    found = fake_device(name="Vulkan0", memory_bytes=31 * GIB)
    device = detect(system, gpu(INTEL, "0000:00:02.0"), engine_devices=[found])
    assert device
    assert (device.unified, device.free_bytes) == (True, 24 * GIB)


def test_the_machine_that_runs_the_tests_is_described() -> None:
    host = detect_machine(Sources(load_nvml=FakeNvml)).host
    assert host.threads >= 1
    assert 0 < host.available_bytes <= host.memory_bytes
