"""A plugin made of fakes, and a plugin manager that holds only what a test names."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.plugins import PluginManager, use_plugin_manager
from xlm_plugin.testing.engine import FakeBackend
from xlm_plugin.testing.machines import fake_machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xlm_plugin.backend import Backend
    from xlm_plugin.machine.document import Machine


class FakePlugin:
    """Offers ``backends`` (one FakeBackend by default) and describes ``machine``."""

    def __init__(self, backends: Sequence[Backend] | None = None, machine: Machine | None = None) -> None:
        self.machine = machine or fake_machine()
        self.backends = (FakeBackend(self.machine.device),) if backends is None else tuple(backends)

    @hookimpl
    def xlm_backends(self) -> Sequence[Backend]:
        """Return the engines given."""
        return self.backends

    @hookimpl
    def xlm_describe_machine(self) -> Machine:
        """Return the machine given."""
        return self.machine


@contextmanager
def plugin_manager(*plugins: object) -> Iterator[PluginManager]:
    """Give the process a manager with just ``plugins`` while the context lasts.

    The last one is asked first. Raises pluggy's PluginValidationError for a hook that does not exist
    or asks for an argument that the hook does not have.
    """
    manager = PluginManager()
    for plugin in plugins:
        manager.register(plugin)
    manager.check_pending()
    with use_plugin_manager(manager):
        yield manager
