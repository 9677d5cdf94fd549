from __future__ import annotations

from dataclasses import replace

import pytest

from tests.profile.rows import machine_rows
from xlm_plugin.errors import ProfileError
from xlm_plugin.machine import store
from xlm_plugin.machine.identity import read_identity
from xlm_plugin.machine.profile import Profile
from xlm_plugin.machine.profile_document import ProfileDocument
from xlm_plugin.testing import fake_device, fake_host, fake_machine

MACHINE = fake_machine(fake_device(name="STORE0"))
IDENTITY = read_identity(MACHINE)
DOCUMENT = ProfileDocument(IDENTITY, machine_rows())


def test_a_machine_that_was_not_measured_has_no_measurements() -> None:
    machine = fake_machine(fake_device(name="NEVER0"))
    assert not store.with_measurements(Profile(machine)).is_measured


def test_a_profile_is_found_by_its_machine() -> None:
    store.save(DOCUMENT)
    found = store.with_measurements(Profile(MACHINE))
    assert len(found.measurements) == len(DOCUMENT.measurements)
    assert found.changes == ()


def test_emulated_links_of_all_speeds_share_a_profile() -> None:
    slow, fast = (
        read_identity(fake_machine(fake_device(name="EMU0", emulated=True, link_bytes_per_s=speed)))
        for speed in (1e9, 16e9)
    )
    assert store.profile_path(slow) == store.profile_path(fast)


def test_the_profile_of_another_machine_in_its_place_is_refused() -> None:
    other = read_identity(replace(MACHINE, host=replace(fake_host(), cpu="another processor")))
    path = store.save(DOCUMENT)
    path.rename(store.profile_path(other))
    with pytest.raises(ProfileError, match="of another machine"):
        store.load(other)


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        ({"driver": "550.1"}, {"driver": "560.2"}, "driver is 560.2, not 550.1"),
        ({"link_width": 16}, {"link_width": 4}, "width of the link is 4, not 16"),
        ({"link_speed": "16.0 GT/s PCIe"}, {"link_speed": "2.5 GT/s PCIe"}, "measure the link again"),
        ({"power_source": "mains"}, {"power_source": "battery"}, "measure everything again"),
        ({"threads": 8}, {"threads": 4}, "number of threads is 4, not 8"),
        ({"memory_bytes": 32 << 30}, {"memory_bytes": 16 << 30}, "memory is 16.00 GiB, not 32.00 GiB"),
    ],
)
def test_what_has_changed_is_said_with_what_to_measure_again(
    then: dict[str, object], now: dict[str, object], says: str
) -> None:
    before, after = replace(IDENTITY, **then), replace(IDENTITY, **now)  # type: ignore[arg-type]
    (change,) = after.changes_since(before)
    assert says in change


def test_a_little_less_memory_is_no_change() -> None:
    less = replace(IDENTITY, memory_bytes=int(IDENTITY.memory_bytes * 0.99))
    assert less.changes_since(IDENTITY) == ()


def test_what_the_system_did_not_say_is_no_change() -> None:
    assert replace(IDENTITY, driver="560.2").changes_since(replace(IDENTITY, driver=None)) == ()
