"""A machine as data: one device, its host, and their limits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator.

    ``free_bytes`` is what the driver reports now. ``unified`` devices share the host's memory.
    ``emulated`` devices compute on the CPU behind a link of a stated speed. ``link_bytes_per_s`` is
    None until it is measured or described. ``asleep`` devices are powered down and were not woken
    to be asked: their bytes are 0.
    """

    name: str
    description: str
    memory_bytes: int
    free_bytes: int
    unified: bool = False
    emulated: bool = False
    link_bytes_per_s: float | None = None
    asleep: bool = False


@dataclass(frozen=True, slots=True)
class Host:
    """The CPU side.

    ``threads`` is the number worth using: the least of the CPU set, the CFS quota and the physical
    performance cores. ``available_bytes`` respects the cgroup. ``memlock_bytes`` is None where pinned
    memory is not limited. Under ``wsl`` a driver that runs out of VRAM does not fail but spills into
    host memory, many times slower.
    """

    cpu: str
    threads: int
    memory_bytes: int
    available_bytes: int
    memlock_bytes: int | None = None
    wsl: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """A host and its device; ``device`` is None where there is no accelerator."""

    host: Host
    device: Device | None = None
