"""``xlm plugins``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from xlm_plugin.cli import cli
from xlm_plugin.plugins import PluginManager, use_plugin_manager
from xlm_plugin.testing import FakePlugin

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest
    from click.testing import Result


def one_loaded_and_one_broken(monkeypatch: pytest.MonkeyPatch) -> PluginManager:
    monkeypatch.setenv("XLM_LOAD_PLUGINS", "elsewhere")
    manager = PluginManager()
    manager.register(FakePlugin(), "fakes")
    manager.load_installed()
    return manager


def test_loaded_and_skipped_plugins_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    with use_plugin_manager(one_loaded_and_one_broken(monkeypatch)):
        result = CliRunner().invoke(cli, ["plugins"])
    assert result.exit_code == 0
    _, loaded, skipped, *_ = (line.split() for line in result.stdout.splitlines())
    assert loaded == ["fakes", "-", "-", "xlm_backends,", "xlm_describe_machine"]
    assert skipped[:4] == ["elsewhere", "-", "-", "skipped:"]


def test_the_list_is_json_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    with use_plugin_manager(one_loaded_and_one_broken(monkeypatch)):
        listed = json.loads(CliRunner().invoke(cli, ["plugins", "--json"]).stdout)
    assert [(info["name"], info["problem"] is None) for info in listed] == [
        ("fakes", True),
        ("elsewhere", False),
    ]
    assert listed[0]["hooks"] == ["xlm_backends", "xlm_describe_machine"]


def test_no_plugins_is_said_in_words(invoke: Callable[..., Result]) -> None:
    assert invoke("plugins").stdout == "No plugins are loaded.\n"
