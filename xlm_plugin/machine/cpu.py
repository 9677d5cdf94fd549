"""The CPU: its name, and how many threads are worth using."""

from __future__ import annotations

import math
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.machine.cgroup import find_control_group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.machine.files import SystemFiles

_CPUS = "/sys/devices/system/cpu"


@dataclass(frozen=True, slots=True)
class CpuLimits:
    """What bounds the number of threads.

    ``allowed`` counts the logical CPUs that this process may use, ``cores`` the physical performance
    cores among them. ``quota`` is the CPU time per time that the control group gives, None for all.
    """

    allowed: int
    cores: int
    quota: float | None = None

    @property
    def threads(self) -> int:
        """The number of threads worth using.

        More than that is not slower by a little: spinning threads burn the quota that the working
        ones need, and slow cores hold up the fast ones.
        """
        quota = self.allowed if self.quota is None else math.ceil(self.quota)
        return max(min(self.allowed, self.cores, quota), 1)


def read_cpu_limits(files: SystemFiles) -> CpuLimits:
    """Return what bounds the number of threads."""
    allowed = _cpus(
        files.field("/proc/self/status", "Cpus_allowed_list") or files.text(f"{_CPUS}/online") or "0"
    )
    # Only on CPUs with two kinds of cores does the kernel list one kind.
    performance = _cpus(files.text("/sys/devices/cpu_core/cpus") or "") & allowed
    cores = {_core(files, cpu) for cpu in performance or allowed}
    return CpuLimits(len(allowed), len(cores), min(_quotas(files), default=None))


def read_cpu_name(files: SystemFiles) -> str:
    """Return the processor's name, or the architecture where it has none."""
    return files.field("/proc/cpuinfo", "model name") or platform.machine()


def _core(files: SystemFiles, cpu: int) -> str:
    """Return what all logical CPUs of one core have in common."""
    return files.text(f"{_CPUS}/cpu{cpu}/topology/thread_siblings_list") or str(cpu)


def _quotas(files: SystemFiles) -> Iterator[float]:
    group = find_control_group(files, "cpu")
    for folder in group.folders:
        if group.version == 1:
            quota, period = (files.number(f"{folder}/cpu.cfs_{name}_us") for name in ("quota", "period"))
            if quota and period and quota > 0:
                yield quota / period
        else:
            quota_text, _, period_text = (files.text(f"{folder}/cpu.max") or "max").partition(" ")
            if quota_text != "max":
                yield int(quota_text) / int(period_text)


def _cpus(listing: str) -> set[int]:
    """Return the CPUs in a kernel list such as ``0-3,8``."""
    cpus: set[int] = set()
    for part in filter(None, listing.split(",")):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
