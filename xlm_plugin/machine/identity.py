"""What makes a machine the one that was measured."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from xlm_plugin.machine.files import SystemFiles
from xlm_plugin.machine.pci import PciGpu, find_gpus

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Machine

# What to measure again where it differs.
_AFFECTS = {
    "driver": "the device's kernels",
    "memory_bytes": "host kernels",
    "threads": "host kernels",
    "link_width": "the link",
    "link_speed": "the link",
    "power_source": "everything",
    "kernel": "the link",
}
_TITLES = {
    "driver": "driver",
    "memory_bytes": "memory",
    "threads": "number of threads",
    "link_width": "width of the link",
    "link_speed": "speed of the link",
    "power_source": "power source",
    "kernel": "system's kernel",
}
# The kernel reserves a little more or less of the memory at each start.
_MEMORY_SLACK = 1 / 16


@dataclass(frozen=True, slots=True)
class MachineIdentity:
    """The parts of a machine that its speed hangs on; None where the system does not say.

    ``device`` and ``cpu`` name the machine. An emulated device's link is no part of it: its speed is set.
    ``link_width`` is in lanes, as it is now; ``link_width_most`` is what device and slot could have.
    """

    device: str
    device_memory_bytes: int
    emulated: bool
    cpu: str
    threads: int
    memory_bytes: int
    driver: str | None = None
    kernel: str | None = None
    link_width: int | None = None
    link_width_most: int | None = None
    link_speed: str | None = None
    power_source: str | None = None

    @property
    def name(self) -> tuple[str, str]:
        """What another machine's profile differs in."""
        return self.device, self.cpu

    def changes_since(self, measured: MachineIdentity) -> tuple[str, ...]:
        """Return a sentence for each thing that is not as it was in ``measured``."""
        return tuple(
            f"The {_TITLES[name]} is {_shown(now)}, not {_shown(then)} as when it was measured: "
            f"measure {_AFFECTS[name]} again with 'xlm profile --again'."
            for name in _TITLES
            if _differs(name, then := getattr(measured, name), now := getattr(self, name))
        )

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def read_identity(machine: Machine, files: SystemFiles | None = None) -> MachineIdentity:
    """Return the identity of ``machine``, whose system is read by ``files``."""
    files = files or SystemFiles()
    device = machine.device
    emulated = device is None or device.emulated
    gpus = () if emulated else find_gpus(files)
    gpu = gpus[0] if gpus else None
    return MachineIdentity(
        device="none"
        if device is None
        else device.name
        if emulated
        else f"{device.name} {device.description}",
        device_memory_bytes=0 if device is None or emulated else device.memory_bytes,
        emulated=emulated,
        cpu=machine.host.cpu,
        threads=machine.host.threads,
        memory_bytes=machine.host.memory_bytes,
        driver=None if emulated else _driver(files),
        kernel=files.text("/proc/sys/kernel/osrelease"),
        link_width=_number(files, gpu, "current_link_width"),
        link_width_most=_number(files, gpu, "max_link_width"),
        link_speed=files.text(f"{gpu.folder}/current_link_speed") if gpu else None,
        power_source=_power_source(files),
    )


def known_fields() -> frozenset[str]:
    """Return the names of all fields."""
    return frozenset(field.name for field in fields(MachineIdentity))


def _differs(name: str, then: Any, now: Any) -> bool:
    if then is None or now is None:
        return False
    if name == "memory_bytes":
        return bool(abs(now - then) > then * _MEMORY_SLACK)
    return bool(then != now)


def _shown(value: Any) -> str:
    from xlm_plugin.units import MIB, format_bytes

    return format_bytes(value) if isinstance(value, int) and value > MIB else str(value)


def _number(files: SystemFiles, gpu: PciGpu | None, name: str) -> int | None:
    return files.number(f"{gpu.folder}/{name}") if gpu else None


def _driver(files: SystemFiles) -> str | None:
    modules = (files.text(f"/sys/module/{module}/version") for module in ("nvidia", "amdgpu", "xe", "i915"))
    return next((version for version in modules if version), None)


def _power_source(files: SystemFiles) -> str | None:
    supplies = files.folders("/sys/class/power_supply/*")
    mains = [s for s in supplies if files.text(f"{s}/type") in ("Mains", "USB")]
    if not any(files.text(f"{supply}/type") == "Battery" for supply in supplies):
        return None
    return "mains" if any(files.number(f"{supply}/online") for supply in mains) else "battery"
