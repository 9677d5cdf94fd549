"""Memory that cannot be pinned makes the link slower, and plans know it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xlm_hooks import plugin as built_in
from xlm_plugin.machine.document import Host, Machine
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.document import Plan, PlannedContext
from xlm_plugin.plan.make import make_plan
from xlm_plugin.plan.pinning import PAGEABLE_LINK_SHARE, can_pin, pinnable_bytes
from xlm_plugin.plan.step_costs import cost_model
from xlm_plugin.testing import fake_device, fake_host, fake_machine, plugin_manager, tiny_model
from xlm_plugin.units import GIB, MIB

MODEL = tiny_model(layers=4, embedding_width=512, ffn_width=2048, vocabulary=4096)
ENOUGH, SHORT = fake_host(memlock_bytes=GIB), fake_host(memlock_bytes=8 * MIB)


def link_bytes_per_s(host: Host) -> float:
    shards = tuple(shard for shard in MODEL.shards if shard.home == "device")
    profile = Profile(fake_machine(fake_device(link_bytes_per_s=10e9), host))
    return cost_model(MODEL, shards, profile).rates.link_bytes_per_s


def planned(host: Host) -> Plan:
    with plugin_manager(built_in) as manager:
        profile = Profile(fake_machine(host=host))
        return make_plan(manager, MODEL, profile, PlannedContext(tokens=512), 500 * MIB)


@pytest.mark.parametrize(
    ("host", "most_bytes"),
    [
        (fake_host(), None),
        (fake_host(memlock_bytes=8 * MIB), 8 * MIB),
        (replace(fake_host(), wsl=True), 8 * GIB),
        (replace(fake_host(memlock_bytes=GIB), wsl=True), GIB),
    ],
)
def test_c43_memlock_and_windows_limit_what_can_be_pinned(host: Host, most_bytes: int | None) -> None:
    assert pinnable_bytes(host) == most_bytes


def test_c43_copies_from_memory_that_cannot_be_pinned_are_predicted_slower() -> None:
    assert link_bytes_per_s(ENOUGH) == 10e9
    assert link_bytes_per_s(SHORT) == 10e9 * PAGEABLE_LINK_SHARE


def test_c43_a_plan_says_so_and_what_to_do() -> None:
    assert not any("pinned" in note for note in planned(ENOUGH).notes)
    assert any("8.00 MiB can be pinned" in note and "ulimit -l" in note for note in planned(SHORT).notes)


@pytest.mark.parametrize("device", [fake_device(unified=True), fake_device(emulated=True)])
def test_devices_that_copy_nothing_from_pinned_memory_do_not_mind(device: object) -> None:
    assert can_pin(MODEL, Machine(SHORT, device))  # type: ignore[arg-type]
    assert not can_pin(MODEL, fake_machine(host=SHORT))
