"""What every test may count on: no settings and no cache of the person who runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from xlm_plugin.cli import cli
from xlm_plugin.testing import plugin_manager

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result


@pytest.fixture(autouse=True)
def own_settings(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    for name in ("XLM_LOAD_PLUGINS", "XLM_DEBUG", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XLM_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def invoke() -> Callable[..., Result]:
    """Return a function that runs a command line with just the given plugins."""

    def run(*arguments: str, plugins: tuple[object, ...] = ()) -> Result:
        with plugin_manager(*plugins):
            return CliRunner().invoke(cli, arguments, prog_name="xlm")

    return run
