"""What a plan is made for: one device of this machine, or an emulated one, and a share of its memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xlm_plugin.errors import PluginError, UsageError
from xlm_plugin.machine.descriptor import find_machine
from xlm_plugin.machine.document import Device
from xlm_plugin.machine.profile import Profile
from xlm_plugin.machine.store import with_measurements
from xlm_plugin.units import GIB, format_bytes, parse_bytes

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Host, Machine
    from xlm_plugin.plugins import PluginManager

EMULATED_NAME = "EMU0"
EMULATED_LINK_BYTES_PER_S = 16e9

# What stays free for others: llama.cpp leaves 1 GiB too, which is too much of a small device.
MARGIN_BYTES = GIB
MARGIN_SHARE = 1 / 8


def describe_machine(pm: PluginManager) -> Machine:
    """Return this machine. Raises PluginError where no plugin describes it."""
    machine: Machine | None = pm.hook.xlm_describe_machine()
    if machine is None:
        raise PluginError("No plugin describes this machine.", "Let 'hooks' through in XLM_LOAD_PLUGINS.")
    return machine


def choose_profile(
    pm: PluginManager, device_name: str | None = None, machine_name: str | None = None
) -> tuple[Profile, Device]:
    """Return the profile of this machine, as far as it is measured, or of a described one, and its device.

    Raises UsageError where there is no such device or machine, and for both at once, and ProfileError for
    measurements that cannot be used.
    """
    if machine_name is None:
        machine = describe_machine(pm)
        device = choose_device(pm, machine, device_name)
        return with_measurements(Profile(replace(machine, device=device))), device
    if device_name is not None:
        raise UsageError(
            "A described machine has its own device.",
            "Leave out --device, or --machine to plan for this one.",
        )
    described = find_machine((m for machines in pm.hook.xlm_machines() for m in machines), machine_name)
    return described.profile(), described.device_document()


def choose_device(pm: PluginManager, machine: Machine, name: str | None = None) -> Device:
    """Return the device that ``name`` names.

    None is the machine's own device, or an emulated one where there is none. ``"emulated:GBps"`` sets
    the emulated link's speed in 10**9 bytes/s. Raises UsageError where there is no such device.
    """
    if name is None:
        return machine.device or emulated_device(machine.host)
    kind, _, speed = name.partition(":")
    if kind in ("emulated", EMULATED_NAME):
        return emulated_device(machine.host, _link_bytes_per_s(name, speed))
    if machine.device and machine.device.name == name:
        return machine.device
    found = {device.name: device for backend in pm.backends() for device in backend.probe().devices}
    if name not in found:
        own = [machine.device.name] if machine.device else []
        names = ", ".join(dict.fromkeys([*own, *found, "emulated"]))
        raise UsageError(f"There is no device '{name}' here.", f"Choose one of: {names}.")
    return found[name]


def emulated_device(host: Host, link_bytes_per_s: float = EMULATED_LINK_BYTES_PER_S) -> Device:
    """Return an accelerator that computes on ``host``, behind a link of the given speed."""
    return Device(
        name=EMULATED_NAME,
        description=f"emulated accelerator, {link_bytes_per_s / 1e9:g} GB/s link",
        memory_bytes=host.memory_bytes,
        free_bytes=host.available_bytes,
        emulated=True,
        link_bytes_per_s=link_bytes_per_s,
    )


def budget_for(device: Device, vram: str = "auto") -> int:
    """Return the bytes that ``vram`` names: a size, or ``"auto"`` for what is free less a margin.

    Raises UsageError for a size that cannot be used, and where ``auto`` means nothing.
    """
    if vram != "auto":
        return parse_bytes(vram)
    if device.emulated:
        raise UsageError(
            f"The emulated device {device.name} has no memory of its own to take a share of.",
            "Give a budget, such as --vram 6GiB.",
        )
    if device.asleep:
        raise UsageError(
            f"The device {device.name} is asleep, and is not woken to ask how much memory is free.",
            "Give a budget, such as --vram 6GiB.",
        )
    budget_bytes = device.free_bytes - min(MARGIN_BYTES, int(device.free_bytes * MARGIN_SHARE))
    if budget_bytes <= 0:
        raise UsageError(
            f"The device {device.name} has no memory free (of {format_bytes(device.memory_bytes)}).",
            "Close what uses it, or give a budget, such as --vram 6GiB.",
        )
    return budget_bytes


def _link_bytes_per_s(name: str, speed: str) -> float:
    if ":" not in name:
        return EMULATED_LINK_BYTES_PER_S
    try:
        link_bytes_per_s = float(speed) * 1e9
    except ValueError:
        link_bytes_per_s = 0.0
    if not 0 < link_bytes_per_s < float("inf"):
        raise UsageError(f"'{name}' does not set a link speed.", "Write GB/s, such as --device emulated:16.")
    return link_bytes_per_s
