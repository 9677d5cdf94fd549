"""The plugin that offers the shipped data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    from xlm_plugin.model.descriptor import ModelDescriptor


@hookimpl
def xlm_models() -> Iterable[ModelDescriptor]:
    """Return the models of ``models/``."""
    import json
    from importlib.resources import files

    from xlm_plugin.model.descriptor import ModelDescriptor

    for entry in files("xlm_profiles").joinpath("models").iterdir():
        yield ModelDescriptor(**json.loads(entry.read_text(encoding="utf-8")))
