"""This machine: its host, and the accelerator that an engine would take."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xlm_plugin.machine import amd, nvidia, pci
from xlm_plugin.machine.cpu import read_cpu_limits, read_cpu_name
from xlm_plugin.machine.document import Device, Host, Machine
from xlm_plugin.machine.files import SystemFiles
from xlm_plugin.machine.memory import read_memlock_bytes, read_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from xlm_plugin.machine.memory import HostMemory
    from xlm_plugin.machine.pci import PciGpu

_SOFTWARE = ("llvmpipe", "lavapipe", "swiftshader")
_NAMES = {pci.NVIDIA: nvidia.NAME, pci.AMD: amd.NAME, pci.INTEL: "Vulkan0"}


@dataclass(frozen=True)
class Sources:
    """Where a machine is read from. ``engine_devices`` asks engines that are built, which takes longest."""

    files: SystemFiles = field(default_factory=SystemFiles)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    load_nvml: Callable[[], Any] = nvidia.import_nvml
    engine_devices: Callable[[], Iterable[Device]] = tuple


def detect_machine(sources: Sources | None = None) -> Machine:
    """Return this machine. Raises XlmError where its memory cannot be read."""
    sources = sources or Sources()
    memory = read_memory(sources.files)
    host = Host(
        cpu=read_cpu_name(sources.files),
        threads=read_cpu_limits(sources.files).threads,
        memory_bytes=memory.total_bytes,
        available_bytes=memory.available_bytes,
        memlock_bytes=read_memlock_bytes(sources.files),
        wsl=_is_wsl(sources.files),
    )
    gpus = pci.find_gpus(sources.files)
    device = (
        _nvidia(sources, _of(pci.NVIDIA, gpus), memory)
        or _amd(sources, _of(pci.AMD, gpus), memory)
        or (_by_engine(sources, gpus, memory) if gpus or host.wsl else None)
    )
    return Machine(host, device)


def is_software(device: Device) -> bool:
    """Whether the CPU plays the device."""
    return device.emulated or any(name in device.description.lower() for name in _SOFTWARE)


def _nvidia(sources: Sources, gpus: Sequence[PciGpu], memory: HostMemory) -> Device | None:
    # No GPU in sysfs means nothing: WSL, Jetson and some containers hide it there.
    if asleep := _asleep(gpus):
        return asleep
    reading = nvidia.read_nvidia(sources.environment, sources.load_nvml)
    if reading.description is None:
        return None
    if reading.memory_bytes is not None and reading.free_bytes is not None:
        return Device(nvidia.NAME, reading.description, reading.memory_bytes, reading.free_bytes)
    unified = reading.problem is None
    for device in _engine_accelerators(sources):
        if device.name == nvidia.NAME:
            return replace(device, unified=unified)
    if not unified:
        return None
    return Device(nvidia.NAME, reading.description, memory.total_bytes, memory.available_bytes, unified=True)


def _amd(sources: Sources, gpus: Sequence[PciGpu], memory: HostMemory) -> Device | None:
    if asleep := _asleep(gpus):
        return asleep
    device = amd.read_amd(sources.files, gpus, memory)
    if device is None:
        return None
    # Engines drive AMD GPUs by ROCm or by Vulkan.
    names = [found.name for found in _engine_accelerators(sources)] or [amd.NAME]
    return device if amd.NAME in names else replace(device, name=names[0])


def _by_engine(sources: Sources, gpus: Sequence[PciGpu], memory: HostMemory) -> Device | None:
    """Return the first device of an engine, where asking it wakes no GPU."""
    if asleep := _asleep(gpus):
        return asleep
    for device in _engine_accelerators(sources):
        if gpus and all(gpu.is_integrated for gpu in gpus):
            return replace(device, unified=True, free_bytes=min(device.free_bytes, memory.available_bytes))
        return device
    return None


def _asleep(gpus: Sequence[PciGpu]) -> Device | None:
    if gpus and all(gpu.suspended for gpu in gpus):
        return Device(_NAMES[gpus[0].vendor], gpus[0].title, 0, 0, asleep=True)
    return None


def _of(vendor: int, gpus: Sequence[PciGpu]) -> list[PciGpu]:
    return [gpu for gpu in gpus if gpu.vendor == vendor]


def _engine_accelerators(sources: Sources) -> list[Device]:
    return [device for device in sources.engine_devices() if device.memory_bytes and not is_software(device)]


def _is_wsl(files: SystemFiles) -> bool:
    return "microsoft" in (files.text("/proc/sys/kernel/osrelease") or "").lower()
