"""``xlm ps`` and its like against a stand-in engine."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from xlm_llamacpp import plugin
from xlm_llamacpp.process import start
from xlm_plugin.cli import cli
from xlm_plugin.testing import plugin_manager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from xlm_llamacpp.process import ServerProcess
    from xlm_plugin.backend import LaunchSpec


@pytest.fixture
def xlm() -> Callable[..., int]:
    def run(*arguments: str) -> int:
        with plugin_manager(plugin), pytest.raises(SystemExit) as ended:
            cli.main(list(arguments), prog_name="xlm")
        return int(ended.value.code or 0)

    return run


@pytest.fixture
def server(spec: LaunchSpec) -> Iterator[ServerProcess]:
    with start(spec) as engine:
        yield engine


def test_running_engines_are_listed(
    xlm: Callable[..., int], server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("ps") == 0
    shown = capsys.readouterr().out
    assert str(server.pid) in shown
    assert "10 / 1000 B" in shown
    assert "running" in shown


def test_running_engines_are_listed_as_json(
    xlm: Callable[..., int], server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("ps", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["pid"], listed["name"], listed["url"]) == (server.pid, "tiny", server.url)
    assert (listed["device_bytes"], listed["budget_bytes"], listed["state"]) == (10, 1000, "running")


def test_the_list_fits_80_columns_and_breaks_no_address(
    xlm: Callable[..., int],
    spec: LaunchSpec,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    console = Console(width=80)
    monkeypatch.setattr("xlm_llamacpp.commands.control.out", lambda: console)
    with start(replace(spec, name="a-model-with-a-name-as-long-as-they-are-today-Q4_K_M")) as engine:
        assert xlm("ps") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert engine.url in lines[1]


def test_an_engine_goes_by_the_name_that_it_was_started_by(
    xlm: Callable[..., int], spec: LaunchSpec, capsys: pytest.CaptureFixture[str]
) -> None:
    with start(replace(spec, name="demo")):
        assert xlm("stats", "demo") == xlm("stats", "tiny") == 0
        assert xlm("stats", "other") == 1
    assert "(demo)" in capsys.readouterr().err


def test_where_nothing_runs_ps_says_so(xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert xlm("ps") == 0
    shown = capsys.readouterr()
    assert not shown.out
    assert "No engine runs" in shown.err


def test_stats_show_what_the_device_counts(
    xlm: Callable[..., int], server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("stats", "tiny") == 0
    shown = capsys.readouterr().out
    assert "kv and compute" in shown
    assert "7 to 1 tokens, 2 to 512 tokens" in shown
    assert server.pid


def test_stats_are_given_as_json(
    xlm: Callable[..., int], server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("stats", str(server.pid), "--json") == 0
    assert json.loads(capsys.readouterr().out)["device_bytes"] == 10


def test_a_budget_is_given_with_its_unit(
    xlm: Callable[..., int], server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("budget", str(server.pid), "3KiB") == 0
    assert "3.00 KiB" in capsys.readouterr().out
    assert xlm("budget", str(server.pid), "3") == 1
    assert "no unit" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["pause", "resume", "park", "wake"])
def test_a_change_of_state_tells_the_state(
    xlm: Callable[..., int], server: ServerProcess, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert xlm(command, str(server.pid)) == 0
    assert "It is running and holds 10 B of 1000 B." in capsys.readouterr().err


def test_an_engine_whose_device_is_silent_is_listed_all_the_same(
    xlm: Callable[..., int], server: ServerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    assert server.directory
    (server.directory / "control.sock").unlink()
    assert xlm("ps") == 0
    assert "silent" in capsys.readouterr().out
    assert xlm("ps", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["device_bytes"], listed["state"]) == (None, "silent")


def test_an_engine_that_does_not_run_is_told(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("stats", "4711") == 1
    assert "No running engine is called '4711'" in capsys.readouterr().err
