"""Which device a plan is for, and how much of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xlm_plugin.errors import PluginError, UsageError
from xlm_plugin.plan.target import (
    EMULATED_LINK_BYTES_PER_S,
    budget_for,
    choose_device,
    describe_machine,
    emulated_device,
)
from xlm_plugin.testing import FakeBackend, FakePlugin, fake_device, fake_host, fake_machine, plugin_manager
from xlm_plugin.units import GIB, MIB

MACHINE = fake_machine()


def test_the_machine_is_what_a_plugin_describes() -> None:
    with plugin_manager(FakePlugin(machine=MACHINE)) as manager:
        assert describe_machine(manager) == MACHINE


def test_a_machine_that_no_plugin_describes_is_an_error() -> None:
    with plugin_manager() as manager, pytest.raises(PluginError, match="describes this machine"):
        describe_machine(manager)


def test_the_machines_own_device_is_the_default() -> None:
    with plugin_manager() as manager:
        assert choose_device(manager, MACHINE) == MACHINE.device
        assert choose_device(manager, MACHINE, "FAKE0") == MACHINE.device


def test_without_a_device_the_emulated_one_is_planned_for_and_named_so() -> None:
    with plugin_manager() as manager:
        device = choose_device(manager, fake_machine(accelerator=False))
    assert (device.name, device.emulated) == ("EMU0", True)
    assert device.link_bytes_per_s == EMULATED_LINK_BYTES_PER_S


def test_an_emulated_device_may_be_asked_for_with_its_link_speed() -> None:
    with plugin_manager() as manager:
        assert choose_device(manager, MACHINE, "emulated").link_bytes_per_s == EMULATED_LINK_BYTES_PER_S
        assert choose_device(manager, MACHINE, "EMU0").link_bytes_per_s == EMULATED_LINK_BYTES_PER_S
        assert choose_device(manager, MACHINE, "emulated:2.5").link_bytes_per_s == 2.5e9


@pytest.mark.parametrize("speed", ["", "fast", "0", "-1", "inf", "nan"])
def test_a_link_speed_that_is_no_speed_is_refused(speed: str) -> None:
    with plugin_manager() as manager, pytest.raises(UsageError, match="does not set a link speed"):
        choose_device(manager, MACHINE, f"emulated:{speed}")


def test_a_device_that_a_backend_finds_can_be_named() -> None:
    second = fake_device(name="FAKE1")
    with plugin_manager(FakePlugin([FakeBackend(second)])) as manager:
        assert choose_device(manager, MACHINE, "FAKE1") == second


def test_an_unknown_device_is_refused_with_the_known_ones() -> None:
    with plugin_manager(FakePlugin()) as manager, pytest.raises(UsageError) as caught:
        choose_device(manager, MACHINE, "CUDA7")
    assert "no device 'CUDA7'" in caught.value.message
    assert "FAKE0, emulated" in caught.value.hint


def test_a_decimal_and_a_binary_budget_are_told_apart() -> None:
    assert budget_for(fake_device(), "6GB") == 6 * 10**9
    assert budget_for(fake_device(), "6GiB") == 6 * 2**30


@pytest.mark.parametrize("size", ["6", "0GiB", "-1GiB", "much", "6XB"])
def test_a_budget_that_is_no_size_is_refused(size: str) -> None:
    with pytest.raises(UsageError):
        budget_for(fake_device(), size)


def test_c34_auto_is_what_is_free_less_a_margin_not_the_total() -> None:
    assert budget_for(fake_device(memory_bytes=24 * GIB, free_bytes=20 * GIB)) == 19 * GIB
    assert budget_for(fake_device(memory_bytes=2 * GIB, free_bytes=800 * MIB)) == 700 * MIB


def test_auto_means_nothing_for_an_emulated_device() -> None:
    with pytest.raises(UsageError, match="EMU0 has no memory of its own"):
        budget_for(emulated_device(fake_host()))


def test_auto_needs_free_memory() -> None:
    with pytest.raises(UsageError, match=r"no memory free \(of 8.00 GiB\)"):
        budget_for(fake_device(free_bytes=0))


def test_a_sleeping_device_is_not_woken_to_find_a_budget() -> None:
    with pytest.raises(UsageError, match="is asleep"):
        budget_for(replace(fake_device(), asleep=True))
