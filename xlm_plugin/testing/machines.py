"""Described machines: nothing here looks at the real one."""

from __future__ import annotations

from xlm_plugin.machine.document import Device, Host, Machine
from xlm_plugin.units import GIB


def fake_device(
    *,
    name: str = "FAKE0",
    memory_bytes: int = 8 * GIB,
    free_bytes: int | None = None,
    unified: bool = False,
    emulated: bool = False,
    link_bytes_per_s: float | None = 12e9,
) -> Device:
    """Return a device; all of its memory is free unless ``free_bytes`` says otherwise."""
    return Device(
        name=name,
        description="a device for tests",
        memory_bytes=memory_bytes,
        free_bytes=memory_bytes if free_bytes is None else free_bytes,
        unified=unified,
        emulated=emulated,
        link_bytes_per_s=link_bytes_per_s,
    )


def fake_host(
    *,
    threads: int = 4,
    memory_bytes: int = 16 * GIB,
    available_bytes: int | None = None,
    memlock_bytes: int | None = None,
) -> Host:
    """Return a host; all of its memory is available unless ``available_bytes`` says otherwise."""
    return Host(
        cpu="a processor for tests",
        threads=threads,
        memory_bytes=memory_bytes,
        available_bytes=memory_bytes if available_bytes is None else available_bytes,
        memlock_bytes=memlock_bytes,
    )


def fake_machine(
    device: Device | None = None, host: Host | None = None, *, accelerator: bool = True
) -> Machine:
    """Return a machine; without ``accelerator`` it has no device."""
    return Machine(host or fake_host(), (device or fake_device()) if accelerator else None)
