"""For the tests of plugin authors: small models, described machines, an engine without a process.

with plugin_manager(FakePlugin(machine=fake_machine())) as manager:
    backend, = manager.backends()
"""

from __future__ import annotations

from xlm_plugin.testing.engine import FakeBackend, FakeControl, FakeEngine
from xlm_plugin.testing.machines import fake_device, fake_host, fake_machine
from xlm_plugin.testing.models import tiny_model, tiny_plan
from xlm_plugin.testing.plugin import FakePlugin, plugin_manager

__all__ = [
    "FakeBackend",
    "FakeControl",
    "FakeEngine",
    "FakePlugin",
    "fake_device",
    "fake_host",
    "fake_machine",
    "plugin_manager",
    "tiny_model",
    "tiny_plan",
]
