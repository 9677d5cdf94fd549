"""The frame of the command line: which commands there are, and what becomes of errors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from xlm_plugin import __version__
from xlm_plugin.cli import LazyCommand, cli
from xlm_plugin.cli import _app as app
from xlm_plugin.errors import DoesNotFitError, XlmError
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.testing import plugin_manager

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    Invoke = Callable[..., Result]

CORE = ["inspect", "plan", "run", "serve", "plugins", "bench", "doctor"]


class Commands:
    """A plugin that adds a command for each of ``actions``."""

    def __init__(self, **actions: Callable[[], object]) -> None:
        self.actions = actions

    @hookimpl
    def xlm_commands(self, cli: click.Group) -> None:
        for name, action in self.actions.items():
            cli.add_command(click.Command(name, callback=action, help=f"Do {name}."))


def raising(error: BaseException) -> Callable[[], object]:
    def action() -> None:
        raise error

    return action


def test_help_lists_core_commands_first_and_then_those_of_plugins(invoke: Invoke) -> None:
    result = invoke("--help", plugins=(Commands(boil=int, bake=int),))
    listed = [line.split()[0] for line in result.stdout.partition("Commands:\n")[2].splitlines()]
    assert (result.exit_code, listed) == (0, [*CORE, "boil", "bake"])


def test_help_imports_no_module_of_a_command_and_no_heavy_library() -> None:
    code = (
        "import sys\n"
        "from xlm_plugin.cli import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    # Built-in plugins count too; whether they are installed is not this test's business.
    imported = run_python(code).stderr.split()
    commands = {command.target.partition(":")[0] for command in app.CORE_COMMANDS}
    heavy = {"gguf", "httpx", "numpy", "psutil", "pydantic", "pynvml", "rich"}
    assert not (commands | heavy) & set(imported)


def test_the_version_is_shown(invoke: Invoke) -> None:
    assert invoke("--version").stdout == f"xlm, version {__version__}\n"


def test_a_command_of_a_plugin_runs(invoke: Invoke) -> None:
    result = invoke("boil", plugins=(Commands(boil=lambda: click.echo("boiled")),))
    assert (result.exit_code, result.stdout) == (0, "boiled\n")


def test_commands_belong_to_the_plugins_that_are_loaded_now(invoke: Invoke) -> None:
    assert invoke("boil", plugins=(Commands(boil=int),)).exit_code == 0
    assert invoke("boil").exit_code == 2


def test_a_plugin_cannot_take_the_name_of_another_command(invoke: Invoke) -> None:
    result = invoke("--help", plugins=(Commands(plan=int),))
    assert "failed in xlm_commands and is skipped: There is a command 'plan' already." in result.stderr
    assert "Plan a model within a VRAM budget." in result.stdout


def test_a_plugin_that_cannot_add_its_commands_does_not_stop_the_tool(invoke: Invoke) -> None:
    class Broken:
        @hookimpl
        def xlm_commands(self) -> None:
            raise RuntimeError("no commands today")

    result = invoke("--help", plugins=(Broken(), Commands(boil=int)))
    assert result.exit_code == 0
    assert "RuntimeError: no commands today" in result.stderr
    assert "boil" in result.stdout


@pytest.mark.parametrize(
    ("error", "exit_code", "shown"),
    [
        (XlmError("It is broken.", "Mend it."), 1, "Error: It is broken.\nMend it.\n"),
        (XlmError("It is broken."), 1, "Error: It is broken.\n"),
        (DoesNotFitError("It is too big."), 3, "Error: It is too big.\n"),
        (click.UsageError("no such thing"), 2, "no such thing"),
        (click.Abort(), 1, ""),
        (KeyboardInterrupt(), 130, ""),
        (ZeroDivisionError("by zero"), 1, "This is a bug in xlm-plugin: ZeroDivisionError: by zero"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_an_error_becomes_a_sentence_and_an_exit_code(
    invoke: Invoke, error: BaseException, exit_code: int, shown: str
) -> None:
    result = invoke("fail", plugins=(Commands(fail=raising(error)),))
    assert result.exit_code == exit_code
    assert shown in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_the_traceback_is_shown_on_request(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLM_DEBUG", "1")
    result = invoke("fail", plugins=(Commands(fail=raising(ZeroDivisionError("by zero"))),))
    assert "Traceback (most recent call last)" in result.stderr


def test_a_number_that_a_command_returns_is_the_exit_code(invoke: Invoke) -> None:
    assert invoke("check", plugins=(Commands(check=lambda: 1),)).exit_code == 1


def test_anything_else_that_a_command_returns_is_success(invoke: Invoke) -> None:
    assert invoke("check", plugins=(Commands(check=lambda: "done"),)).exit_code == 0


def test_errors_pass_through_where_the_caller_handles_them() -> None:
    error = XlmError("It is broken.")
    with plugin_manager(Commands(fail=raising(error))), pytest.raises(XlmError) as raised:
        cli.main(["fail"], standalone_mode=False)
    assert raised.value is error


def test_a_lazy_command_is_the_command_itself_once_it_is_invoked(invoke: Invoke) -> None:
    class Lazy:
        @hookimpl
        def xlm_commands(self, cli: click.Group) -> None:
            cli.add_command(LazyCommand("check", "xlm_plugin.cli.doctor:command", "Check."))

    result = invoke("check", "--help", plugins=(Lazy(),))
    assert "--json" in result.stdout
    assert LazyCommand("check", "xlm_plugin.cli.doctor:command", "Check.").to_info_dict(click.Context(cli))[
        "name"
    ] == ("doctor")


def test_the_console_script_runs_the_command_line_of_the_process(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["xlm", "--version"])
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("xlm, version ")


def test_a_reader_that_leaves_is_no_error() -> None:
    code = (
        "from tests.cli.test_app import *\n"
        "with plugin_manager(Commands(talk=lambda: [click.echo('x' * 1000) for _ in iter(int, 1)])):\n"
        "    cli.main(['talk'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 1


def test_a_reader_that_has_left_before_the_end_is_no_error() -> None:
    code = (
        "from tests.cli.test_app import *\n"
        "with plugin_manager(Commands(talk=lambda: print('not flushed yet'))):\n"
        "    cli.main(['talk'])\n"
    )
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as gone:
        result = subprocess.run([sys.executable, "-c", code], stdout=gone, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence() -> None:
    code = (
        "from tests.cli.test_app import *\n"
        "with plugin_manager(Commands(talk=lambda: print('not flushed yet'))):\n"
        "    cli.main(['talk'])\n"
    )
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: What is written does not fit: No space left on device.")


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
