"""The checks of ``xlm doctor``. Each looks at one thing and says what to do about it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

from xlm_plugin.cli._check_list import Check
from xlm_plugin.errors import XlmError
from xlm_plugin.units import GIB, format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from xlm_plugin.backend import Backend, Probe
    from xlm_plugin.machine.document import Device, Host, Machine
    from xlm_plugin.machine.files import SystemFiles
    from xlm_plugin.plugins import PluginManager

LITTLE_VRAM_BYTES = GIB // 2
LITTLE_MEMORY_BYTES = 2 * GIB
# A build of llama.cpp and one small model.
LITTLE_DISK_BYTES = 3 * GIB


def all_checks(manager: PluginManager, files: SystemFiles, load_nvml: Callable[[], Any]) -> list[Check]:
    """Return all checks in the order of their printing. Nothing here raises or wakes a device."""
    from xlm_plugin.cache import cache_root
    from xlm_plugin.plan.target import describe_machine

    machine, checks = None, []
    try:
        machine = describe_machine(manager)
    except XlmError as error:
        checks.append(Check("machine", "fail", error.message, error.hint))
    if machine:
        checks.append(check_device(machine.device))
    checks.extend(check_nvidia_driver(files, load_nvml))
    checks.extend(check_engines(manager, machine.device if machine else None))
    if machine:
        checks.append(check_memory(machine.host, files))
        checks.append(check_memlock(machine))
        checks.append(check_threads(machine.host, files))
        checks.extend(check_wsl(machine.host))
    checks.append(check_cache(cache_root()))
    checks.extend(check_plugins(manager))
    return checks


def check_device(device: Device | None) -> Check:
    """Say which device models run on."""
    if device is None:
        return Check(
            "device",
            "warn",
            "no accelerator found; the emulated device is used",
            "It computes on the CPU: good for trying plans, not for speed.",
        )
    title = f"{device.name}: {device.description}"
    if device.asleep:
        return Check(
            "device",
            "ok",
            f"{title}, powered down and not woken",
            "Its memory is not known before it wakes: give a budget, such as --vram 6GiB.",
        )
    shared = ", shares the host's memory" if device.unified else ""
    found = f"{title}, {format_bytes(device.free_bytes)} of {format_bytes(device.memory_bytes)} free{shared}"
    if device.free_bytes < LITTLE_VRAM_BYTES:
        return Check("device", "warn", found, "Close what uses it, or give a small budget with --vram.")
    return Check("device", "ok", found)


def check_nvidia_driver(files: SystemFiles, load_nvml: Callable[[], Any]) -> Iterator[Check]:
    """Say whether the driver of an NVIDIA GPU that is awake answers."""
    from xlm_plugin.machine.nvidia import read_nvidia
    from xlm_plugin.machine.pci import NVIDIA, find_gpus

    if any(gpu.vendor == NVIDIA and not gpu.suspended for gpu in find_gpus(files)):
        reading = read_nvidia(os.environ, load_nvml)
        driver = f"NVIDIA {reading.driver}" if reading.driver else "NVIDIA"
        if reading.problem:
            advice = "See what 'nvidia-smi' says; install or reload the driver."
            yield Check("driver", "warn", f"{driver}: {reading.problem}", advice)
        else:
            yield Check("driver", "ok", driver)


def check_engines(manager: PluginManager, device: Device | None) -> Iterator[Check]:
    """Say which engines can start, and whether they find ``device``; one is enough."""
    backends = manager.backends()
    if not backends:
        yield Check("engine", "fail", "no plugin brings one", "Let 'llamacpp' through in XLM_LOAD_PLUGINS.")
    elif device and device.asleep:
        yield Check("engine", "ok", f"not asked, which would wake {device.name}")
    else:
        yield from _check_probes([(backend.name, _probe(backend)) for backend in backends], device)


def _check_probes(probes: list[tuple[str, Probe]], device: Device | None) -> Iterator[Check]:
    works = any(probe.problem is None for _, probe in probes)
    for name, probe in probes:
        names = [found.name for found in probe.devices]
        found = f"{probe.version}, finds {', '.join(names) or 'no accelerator'}"
        if probe.problem:
            yield Check(
                f"engine {name}", "warn" if works else "fail", probe.problem, "Run 'xlm engine build'."
            )
        elif device and device.name not in names:
            advice = f"Build an engine for {device.name} with 'xlm engine build'."
            yield Check(f"engine {name}", "warn", found, advice)
        else:
            yield Check(f"engine {name}", "ok", found)


def check_memory(host: Host, files: SystemFiles) -> Check:
    """Say how much host memory can be had, which is where all weights lie."""
    from xlm_plugin.machine.memory import read_memory

    found = f"{format_bytes(host.available_bytes)} of {format_bytes(host.memory_bytes)} available"
    if limit_bytes := read_memory(files).limit_bytes:
        found += f", the control group allows {format_bytes(limit_bytes)}"
    if host.available_bytes < LITTLE_MEMORY_BYTES:
        return Check("memory", "warn", found, "Close what uses it: all weights are kept in host memory.")
    return Check("memory", "ok", found)


def check_memlock(machine: Machine) -> Check:
    """Say how much memory can be pinned, which fast copies to a device need."""
    limit_bytes = machine.host.memlock_bytes
    if limit_bytes is None:
        return Check("memlock", "ok", "not limited")
    found = f"at most {format_bytes(limit_bytes)} can be pinned"
    if machine.device is None or limit_bytes >= machine.host.memory_bytes:
        return Check("memlock", "ok", found)
    return Check("memlock", "warn", found, "Raise it with 'ulimit -l unlimited' or LimitMEMLOCK=infinity.")


def check_threads(host: Host, files: SystemFiles) -> Check:
    """Say how many threads are worth using, and what bounds them."""
    from xlm_plugin.machine.cpu import read_cpu_limits

    limits = read_cpu_limits(files)
    found = f"{host.threads} on {host.cpu}: {limits.allowed} CPUs allowed, {limits.cores} fast cores"
    if limits.quota is not None:
        found += f", a quota of {limits.quota:g} CPUs"
    return Check("threads", "ok", found)


def check_wsl(host: Host) -> Iterator[Check]:
    """Warn where a full VRAM is not an error but a collapse of speed."""
    if host.wsl:
        advice = "Leave 2 GiB of VRAM free, for example with --vram."
        yield Check("WSL", "warn", "the driver spills into host memory when VRAM is full", advice)


def check_cache(folder: Path) -> Check:
    """Say whether engines and models can be kept."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        advice = "Set XLM_CACHE to a folder that you can write to."
        return Check("cache", "fail", f"{folder} cannot be written", advice)
    free_bytes = shutil.disk_usage(existing).free
    found = f"{folder}, {format_bytes(free_bytes)} free"
    if free_bytes < LITTLE_DISK_BYTES:
        return Check("cache", "warn", found, "Free some space, or set XLM_CACHE to another disk.")
    return Check("cache", "ok", found)


def check_plugins(manager: PluginManager) -> Iterator[Check]:
    """Say which plugins are loaded and which are broken."""
    infos = manager.infos()
    loaded = ", ".join(info.name for info in infos if not info.problem)
    yield Check("plugins", "ok", loaded or "none")
    for info in infos:
        if info.problem:
            yield Check(f"plugin {info.name}", "warn", f"skipped: {info.problem}", "Update or remove it.")


def _probe(backend: Backend) -> Probe:
    from xlm_plugin.backend import Probe

    try:
        return backend.probe()
    # Whatever an adapter raises is what is wrong with it.
    except Exception as error:
        return Probe(backend.name, None, (), str(error) or type(error).__name__)
