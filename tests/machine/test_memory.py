"""Host memory within the limits of control groups (case C37), and what can be locked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_plugin.errors import XlmError
from xlm_plugin.machine.memory import read_memlock_bytes, read_memory
from xlm_plugin.units import GIB, MIB

from .trees import meminfo

if TYPE_CHECKING:
    from .conftest import System

GROUP = "/sys/fs/cgroup"
# What version 1 says where there is no limit: the largest multiple of a page that fits 63 bits.
NO_LIMIT = "9223372036854771712\n"


def group_v2(limit: str, used_bytes: int, cached_bytes: int, folder: str = GROUP) -> dict[str, str]:
    return {
        f"{folder}/memory.max": f"{limit}\n",
        f"{folder}/memory.current": f"{used_bytes}\n",
        f"{folder}/memory.stat": f"anon 5\nactive_file 7\ninactive_file {cached_bytes}\n",
    }


def group_v1(limit: str, used_bytes: int, cached_bytes: int, folder: str) -> dict[str, str]:
    return {
        f"{folder}/memory.limit_in_bytes": limit,
        f"{folder}/memory.usage_in_bytes": f"{used_bytes}\n",
        f"{folder}/memory.stat": f"inactive_file 1\ntotal_inactive_file {cached_bytes}\n",
    }


def test_without_control_groups_memory_is_what_the_host_has(system: System) -> None:
    memory = read_memory(system(meminfo(32 * GIB, 24 * GIB)))
    assert (memory.total_bytes, memory.available_bytes, memory.limit_bytes) == (32 * GIB, 24 * GIB, None)


def test_c37_a_limit_below_the_host_counts(system: System) -> None:
    files = system(
        meminfo(692 * GIB, 600 * GIB)
        | {"/proc/self/cgroup": "0::/\n"}
        | group_v2(str(150 * GIB), 10 * GIB, 0)
    )
    memory = read_memory(files)
    assert (memory.available_bytes, memory.limit_bytes) == (140 * GIB, 150 * GIB)


def test_c37_page_cache_gives_way(system: System) -> None:
    files = system(
        meminfo(64 * GIB, 60 * GIB)
        | {"/proc/self/cgroup": "0::/\n"}
        | group_v2(str(32 * GIB), 28 * GIB + 300 * MIB, 28 * GIB)
    )
    assert read_memory(files).available_bytes == 32 * GIB - 300 * MIB


def test_c37_what_the_host_has_left_bounds_a_generous_limit(system: System) -> None:
    files = system(
        meminfo(64 * GIB, 5 * GIB) | {"/proc/self/cgroup": "0::/\n"} | group_v2(str(32 * GIB), GIB, 0)
    )
    assert read_memory(files).available_bytes == 5 * GIB


def test_c37_max_is_no_limit(system: System) -> None:
    files = system(meminfo(32 * GIB, 24 * GIB) | {"/proc/self/cgroup": "0::/\n"} | group_v2("max", GIB, 0))
    assert read_memory(files).limit_bytes is None


def test_c37_version_1_says_no_limit_by_a_number(system: System) -> None:
    files = system(
        meminfo(32 * GIB, 24 * GIB)
        | {"/proc/self/cgroup": "4:memory:/\n"}
        | group_v1(NO_LIMIT, GIB, 0, f"{GROUP}/memory")
    )
    memory = read_memory(files)
    assert (memory.available_bytes, memory.limit_bytes) == (24 * GIB, None)


def test_c37_version_1_limits_by_its_hierarchy(system: System) -> None:
    files = system(
        meminfo(32 * GIB, 24 * GIB)
        | {"/proc/self/cgroup": "9:cpu,cpuacct:/box\n4:memory:/box\n"}
        | group_v1(f"{8 * GIB}\n", 3 * GIB, GIB, f"{GROUP}/memory/box")
        | group_v1(NO_LIMIT, 30 * GIB, GIB, f"{GROUP}/memory")
    )
    memory = read_memory(files)
    assert (memory.available_bytes, memory.limit_bytes) == (6 * GIB, 8 * GIB)


def test_a_group_above_ours_limits_too(system: System) -> None:
    files = system(
        meminfo(32 * GIB, 24 * GIB)
        | {"/proc/self/cgroup": "0::/pod/box\n"}
        | group_v2(str(16 * GIB), GIB, 0, f"{GROUP}/pod/box")
        | group_v2(str(4 * GIB), 3 * GIB, 0, f"{GROUP}/pod")
    )
    memory = read_memory(files)
    assert (memory.available_bytes, memory.limit_bytes) == (GIB, 4 * GIB)


@pytest.mark.parametrize("path", ["/docker/0123abc", "/../../elsewhere"])
def test_in_a_container_the_hosts_path_means_the_containers_own_group(system: System, path: str) -> None:
    files = system(
        meminfo(32 * GIB, 24 * GIB)
        | {"/proc/self/cgroup": f"0::{path}\n"}
        | group_v2(str(8 * GIB), 2 * GIB, 0)
    )
    assert read_memory(files).available_bytes == 6 * GIB


def test_a_limit_without_counters_is_still_a_limit(system: System) -> None:
    files = system(
        meminfo(32 * GIB, 24 * GIB) | {"/proc/self/cgroup": "0::/\n", f"{GROUP}/memory.max": f"{8 * GIB}"}
    )
    assert read_memory(files).available_bytes == 8 * GIB


def test_a_group_over_its_limit_has_nothing_left(system: System) -> None:
    files = system(
        meminfo(32 * GIB, 24 * GIB) | {"/proc/self/cgroup": "0::/\n"} | group_v2(str(GIB), 2 * GIB, 0)
    )
    assert read_memory(files).available_bytes == 0


def test_a_system_without_proc_is_said_in_words(system: System) -> None:
    with pytest.raises(XlmError, match="memory of this machine cannot be read"):
        read_memory(system({}))


@pytest.mark.parametrize(
    ("limit", "capabilities", "expected"),
    [
        ("8388608", "0000000000000000", 8 * MIB),
        ("unlimited", "0000000000000000", None),
        ("8388608", "0000000000004000", None),
    ],
    ids=["limited", "unlimited", "allowed to lock all"],
)
def test_what_can_be_locked(system: System, limit: str, capabilities: str, expected: int | None) -> None:
    files = system(
        {
            "/proc/self/limits": f"Max processes  1  1\nMax locked memory   {limit}  {limit}  bytes\n",
            "/proc/self/status": f"Name:\tx\nCapEff:\t{capabilities}\n",
        }
    )
    assert read_memlock_bytes(files) == expected


def test_without_proc_locking_is_not_known_to_be_limited(system: System) -> None:
    assert read_memlock_bytes(system({})) is None
