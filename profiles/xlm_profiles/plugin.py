"""The plugin that offers the shipped data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlm_plugin.machine.descriptor import MachineDescriptor
    from xlm_plugin.model.descriptor import ModelDescriptor


@hookimpl
def xlm_models() -> Iterable[ModelDescriptor]:
    """Return the models of ``models/``."""
    import json
    from importlib.resources import files

    from xlm_plugin.model.descriptor import ModelDescriptor

    for entry in files("xlm_profiles").joinpath("models").iterdir():
        yield ModelDescriptor(**json.loads(entry.read_text(encoding="utf-8")))


@hookimpl
def xlm_machines() -> Iterable[MachineDescriptor]:
    """Return the machines of ``machines/``."""
    import json
    from importlib.resources import files

    from xlm_plugin.machine.descriptor import MachineDescriptor, Value

    for entry in sorted(files("xlm_profiles").joinpath("machines").iterdir(), key=lambda file: file.name):
        document = json.loads(entry.read_text(encoding="utf-8"))
        values = {quantity: Value(**found) for quantity, found in document.pop("values").items()}
        yield MachineDescriptor(**document, values=values)
