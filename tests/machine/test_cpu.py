"""How many threads are worth using: cases C38 and C39."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

import pytest

from xlm_plugin.machine.cpu import read_cpu_limits, read_cpu_name

if TYPE_CHECKING:
    from .conftest import System


def cpus(allowed: str, siblings: list[str]) -> dict[str, str]:
    """Return a CPU with the sibling list of each logical CPU."""
    topology = {
        f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": f"{listing}\n"
        for cpu, listing in enumerate(siblings)
    }
    return topology | {"/proc/self/status": f"Cpus_allowed_list:\t{allowed}\n"}


EIGHT_CORES = [str(cpu) for cpu in range(8)]


def test_c38_the_cpu_set_bounds_threads(system: System) -> None:
    limits = read_cpu_limits(system(cpus("0-3", EIGHT_CORES)))
    assert (limits.allowed, limits.cores, limits.threads) == (4, 4, 4)


@pytest.mark.parametrize(
    ("quota", "threads"),
    [("400000 100000", 4), ("350000 100000", 4), ("50000 100000", 1), ("max 100000", 8)],
)
def test_c38_the_quota_of_version_2_bounds_threads(system: System, quota: str, threads: int) -> None:
    group = {"/proc/self/cgroup": "0::/box\n", "/sys/fs/cgroup/box/cpu.max": f"{quota}\n"}
    assert read_cpu_limits(system(cpus("0-7", EIGHT_CORES) | group)).threads == threads


@pytest.mark.parametrize("mount", ["cpu", "cpu,cpuacct"])
def test_c38_the_quota_of_version_1_bounds_threads(system: System, mount: str) -> None:
    group = {
        "/proc/self/cgroup": "3:cpu,cpuacct:/\n",
        f"/sys/fs/cgroup/{mount}/cpu.cfs_quota_us": "250000\n",
        f"/sys/fs/cgroup/{mount}/cpu.cfs_period_us": "100000\n",
    }
    limits = read_cpu_limits(system(cpus("0-7", EIGHT_CORES) | group))
    assert (limits.quota, limits.threads) == (2.5, 3)


def test_version_1_says_no_quota_by_minus_one(system: System) -> None:
    group = {
        "/proc/self/cgroup": "3:cpu:/\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert read_cpu_limits(system(cpus("0-7", EIGHT_CORES) | group)).quota is None


def test_the_least_quota_of_all_groups_counts(system: System) -> None:
    group = {
        "/proc/self/cgroup": "0::/pod/box\n",
        "/sys/fs/cgroup/pod/box/cpu.max": "600000 100000\n",
        "/sys/fs/cgroup/pod/cpu.max": "200000 100000\n",
    }
    assert read_cpu_limits(system(cpus("0-7", EIGHT_CORES) | group)).threads == 2


def test_two_threads_of_a_core_count_once(system: System) -> None:
    siblings = ["0,4", "1,5", "2,6", "3,7"] * 2
    assert read_cpu_limits(system(cpus("0-7", siblings))).threads == 4


def test_c39_only_performance_cores_count(system: System) -> None:
    pairs = [f"{cpu // 2 * 2}-{cpu // 2 * 2 + 1}" for cpu in range(16)]
    small = [str(cpu) for cpu in range(16, 32)]
    hybrid = {"/sys/devices/cpu_core/cpus": "0-15\n", "/sys/devices/cpu_atom/cpus": "16-31\n"}
    limits = read_cpu_limits(system(cpus("0-31", pairs + small) | hybrid))
    assert (limits.allowed, limits.threads) == (32, 8)


def test_a_process_kept_to_small_cores_uses_those(system: System) -> None:
    hybrid = {"/sys/devices/cpu_core/cpus": "0-3\n"}
    assert read_cpu_limits(system(cpus("4-7", EIGHT_CORES) | hybrid)).threads == 4


def test_without_proc_all_cpus_that_are_online_count(system: System) -> None:
    assert read_cpu_limits(system({"/sys/devices/system/cpu/online": "0-1,4\n"})).threads == 3


def test_a_system_that_shows_nothing_has_one_thread(system: System) -> None:
    assert read_cpu_limits(system({})).threads == 1


def test_a_cpu_has_the_name_that_the_system_gives_it(system: System) -> None:
    files = system({"/proc/cpuinfo": "processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\n"})
    assert read_cpu_name(files) == "Fast CPU @ 3 GHz"


def test_a_cpu_without_a_name_is_called_by_its_architecture(system: System) -> None:
    assert read_cpu_name(system({})) == platform.machine()
