"""Host memory: what there is, what this process can still have, and what it can lock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.errors import XlmError
from xlm_plugin.machine.cgroup import find_control_group
from xlm_plugin.units import KIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.machine.files import SystemFiles

_CAP_IPC_LOCK = 14
# Version, then the names of the limit, of what is used, and of the page cache that can be dropped.
_FILES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}


@dataclass(frozen=True, slots=True)
class HostMemory:
    """``limit_bytes`` is the control group's own limit, None where it has none below ``total_bytes``."""

    total_bytes: int
    available_bytes: int
    limit_bytes: int | None = None


def read_memory(files: SystemFiles) -> HostMemory:
    """Return the host's memory within the control group's limits. Raises XlmError where there is no /proc.

    A group has left its limit less what it uses, but the page cache among that gives way.
    """
    total_bytes = _meminfo_bytes(files, "MemTotal")
    available_bytes = _meminfo_bytes(files, "MemAvailable")
    limit_bytes = None
    for group_limit_bytes, left_bytes in _group_limits(files):
        # Version 1 says "no limit" by a number that no machine reaches.
        if group_limit_bytes < total_bytes:
            limit_bytes = min(limit_bytes or group_limit_bytes, group_limit_bytes)
            available_bytes = min(available_bytes, left_bytes)
    return HostMemory(total_bytes, available_bytes, limit_bytes)


def read_memlock_bytes(files: SystemFiles) -> int | None:
    """Return how much memory this process may lock, or None where that is not limited."""
    capabilities = int(files.field("/proc/self/status", "CapEff") or "0", 16)
    if capabilities >> _CAP_IPC_LOCK & 1:
        return None
    limits = (files.field("/proc/self/limits", "Max locked memory") or "unlimited").split()
    return None if limits[0] == "unlimited" else int(limits[0])


def _meminfo_bytes(files: SystemFiles, name: str) -> int:
    value = files.field("/proc/meminfo", f"{name}:")
    if value is None:
        raise XlmError("The memory of this machine cannot be read.", "Mount /proc: /proc/meminfo is missing.")
    return int(value.split()[0]) * KIB


def _group_limits(files: SystemFiles) -> Iterator[tuple[int, int]]:
    group = find_control_group(files, "memory")
    limit, used, cached = _FILES[group.version]
    for folder in group.folders:
        limit_bytes = files.number(f"{folder}/{limit}")
        if limit_bytes is not None:
            used_bytes = files.number(f"{folder}/{used}") or 0
            cached_bytes = int(files.field(f"{folder}/memory.stat", f"{cached} ") or 0)
            yield limit_bytes, max(limit_bytes - used_bytes + cached_bytes, 0)
