"""The built-in plugin describes this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_hooks import plugin as built_in
from xlm_hooks.profiler import describe
from xlm_plugin.machine.document import Machine
from xlm_plugin.testing import FakeBackend, FakePlugin, fake_device, plugin_manager

if TYPE_CHECKING:
    import pytest

    from xlm_plugin.machine.detect import Sources


def test_the_hook_answers_with_this_machine() -> None:
    with plugin_manager(built_in) as manager:
        machine = manager.hook.xlm_describe_machine()
    assert isinstance(machine, Machine)
    assert machine.host.threads >= 1


def test_engines_of_all_plugins_may_be_asked_for_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Sources] = []
    monkeypatch.setattr(describe, "detect_machine", asked.append)
    devices = [fake_device(name="A0"), fake_device(name="B0")]
    with plugin_manager(FakePlugin(backends=[FakeBackend(device) for device in devices])):
        describe.describe_machine()
        assert list(asked[0].engine_devices()) == devices
