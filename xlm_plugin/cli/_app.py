"""The ``xlm`` group: which commands there are, and what becomes of errors."""

from __future__ import annotations

import errno
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from xlm_plugin import __version__
from xlm_plugin.cli._lazy import LazyCommand
from xlm_plugin.errors import PluginError, XlmError
from xlm_plugin.plugins import get_plugin_manager

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.plugins import PluginManager

CORE_COMMANDS = (
    LazyCommand("inspect", "xlm_plugin.cli.inspect:command", "Show a model's shards and what it takes."),
    LazyCommand("plan", "xlm_plugin.cli.plan:command", "Plan a model within a VRAM budget."),
    LazyCommand("run", "xlm_plugin.cli.run:command", "Run a prompt under a plan."),
    LazyCommand("serve", "xlm_plugin.cli.serve:command", "Serve a model under a plan."),
    LazyCommand("plugins", "xlm_plugin.cli.plugins:command", "List the plugins and what is wrong with them."),
    LazyCommand("bench", "xlm_plugin.cli.bench:command", "Measure what is promised."),
    LazyCommand("doctor", "xlm_plugin.cli.doctor:command", "Check that this machine can run models."),
)


class Application(click.Group):
    """A group with the core commands and, once they are needed, those of plugins.

    Exit codes: what an XlmError says (1 error, 3 does not fit), 2 for wrong usage, 130 when
    interrupted. A command that returns an int exits with it. With ``XLM_DEBUG=1`` errors keep their
    traceback.
    """

    _asked: PluginManager | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return core commands first, then those of plugins."""
        self._ask_plugins()
        return list(self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command; plugins are asked only for names that are not core commands."""
        if cmd_name not in _core_commands():
            self._ask_plugins()
        return super().get_command(ctx, cmd_name)

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command. Raises PluginError when the name is taken."""
        name = name or cmd.name
        if name in self.commands:
            raise PluginError(f"There is a command '{name}' already.")
        super().add_command(cmd, name)

    def _ask_plugins(self) -> None:
        manager = get_plugin_manager()
        if manager is not self._asked:
            self._asked = manager
            self.commands = _core_commands()
            manager.hook.xlm_commands(cli=self)

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command line and exit; without ``standalone_mode`` return or raise instead."""
        run = partial(super().main, *args, standalone_mode=False, **extra)
        if not standalone_mode:
            return run()
        sys.exit(_exit_code(run))


def _core_commands() -> dict[str, click.Command]:
    return {str(command.name): command for command in CORE_COMMANDS}


def _exit_code(run: Callable[[], object]) -> int:
    try:
        result = run()
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as abort:
        return 130 if isinstance(abort.__cause__, KeyboardInterrupt) else 1
    except BrokenPipeError:
        _close_stdout()
        return 1
    except XlmError as error:
        _show_error(error.message, error.hint)
        return error.exit_code
    except Exception as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            _close_stdout()
            _show_error(f"What is written does not fit: {error.strerror}.", "Make room there.")
            return 1
        _show_error(
            f"This is a bug in xlm-plugin: {type(error).__name__}: {error}",
            "Run it again with XLM_DEBUG=1 and report the traceback in the project's issue tracker.",
        )
        return 1
    return result if isinstance(result, int) else 0


def _show_error(message: str, hint: str) -> None:
    if os.environ.get("XLM_DEBUG") == "1":
        import traceback

        traceback.print_exc()
    click.echo(f"{click.style('Error:', fg='red', bold=True)} {message}", err=True)
    if hint:
        click.echo(hint, err=True)


def _close_stdout() -> None:
    # The reader is gone: what is still buffered must not raise again when Python exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=Application,
    commands=_core_commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="xlm")
def cli() -> None:
    """Run models that are bigger than your VRAM."""


def main() -> None:
    """Run the command line of this process and exit."""
    cli.main(prog_name="xlm")
