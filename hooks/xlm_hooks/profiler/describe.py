"""This machine, with what engines that are built say about devices that nothing else describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.machine.detect import Sources, detect_machine
from xlm_plugin.plugins import get_plugin_manager

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.machine.document import Device, Machine


def describe_machine() -> Machine:
    """Return this machine. Raises XlmError where its memory cannot be read."""
    return detect_machine(Sources(engine_devices=_engine_devices))


def _engine_devices() -> Iterator[Device]:
    for backend in get_plugin_manager().backends():
        yield from backend.probe().devices
