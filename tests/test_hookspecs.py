"""The plugin API is documented where it is declared."""

from __future__ import annotations

import inspect

import pytest

from xlm_plugin import hookspecs
from xlm_plugin.plugins import PluginManager

HOOKS = sorted(vars(PluginManager().hook))


def test_every_hook_is_found() -> None:
    assert sorted(name for name in vars(hookspecs) if name.startswith("xlm_")) == HOOKS


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_has_a_docstring_of_one_line(name: str) -> None:
    docstring = getattr(hookspecs, name).__doc__
    assert docstring
    assert docstring == docstring.strip()
    assert "\n" not in docstring
    assert docstring.endswith(".")


@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_says_the_types_of_its_arguments_and_of_its_result(name: str) -> None:
    signature = inspect.signature(getattr(hookspecs, name))
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty
