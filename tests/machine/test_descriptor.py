"""Machines as data: those that are shipped, and how values become rates."""

from __future__ import annotations

import pytest

from xlm_plugin.errors import UsageError
from xlm_plugin.machine.descriptor import HOST_BYTES_SHARE, MachineDescriptor, Value, find_machine
from xlm_plugin.units import GIB
from xlm_profiles.plugin import xlm_machines

MACHINES = {machine.name: machine for machine in xlm_machines()}


def described(**values: float) -> MachineDescriptor:
    needed = {"device_memory_gib": 8, "host_memory_gib": 16, "threads": 4, "link_gb_per_s": 12, **values}
    found = {quantity: Value(value, "a test") for quantity, value in needed.items()}
    return MachineDescriptor("tested", "a tested machine", "a device", "a processor", found)  # type: ignore[arg-type]


def test_the_machines_of_both_papers_are_there() -> None:
    assert {"p1-rtx5090-epyc", "p1-rtx5070ti-desktop", "p1-rtx3500ada-laptop"} <= MACHINES.keys()
    assert {"p2-rtx5000ada", "p2-rtxa6000"} <= MACHINES.keys()
    assert len(MACHINES) >= 15


@pytest.mark.parametrize("name", MACHINES)
def test_every_value_of_a_shipped_machine_has_a_source_and_every_rate_makes_sense(name: str) -> None:
    machine = MACHINES[name]
    assert all(value.value > 0 and value.source for value in machine.values.values())
    profile = machine.profile()
    assert profile.rates
    assert profile.machine.device
    assert profile.machine.device.unified == machine.unified
    assert 1e9 < profile.rates.link_bytes_per_s < profile.rates.device_bytes_per_s < 3e12
    assert 10e9 < profile.rates.host_bytes_per_s <= profile.rates.device_bytes_per_s
    assert profile.rates.host_flops_per_s < profile.rates.device_flops_per_s


def test_all_memory_of_a_described_machine_is_free() -> None:
    device = described().device_document()
    assert device.memory_bytes == device.free_bytes == 8 * GIB


def test_an_effective_rate_goes_before_a_peak_which_is_derated() -> None:
    peak = described(host_peak_gb_per_s=100).profile().rates
    effective = described(host_peak_gb_per_s=100, host_gb_per_s=40).profile().rates
    assert peak and effective
    assert peak.host_bytes_per_s == pytest.approx(HOST_BYTES_SHARE * 100e9)
    assert effective.host_bytes_per_s == 40e9
    assert effective.host_experts_bytes_per_s < 40e9


def test_an_unknown_machine_is_refused_with_those_that_are_known() -> None:
    assert find_machine(MACHINES.values(), "rtx3090-ddr4").title.startswith("RTX 3090")
    with pytest.raises(UsageError, match=r"no described machine 'abacus'. Known are: arc-b580-ddr5, "):
        find_machine(MACHINES.values(), "abacus")
