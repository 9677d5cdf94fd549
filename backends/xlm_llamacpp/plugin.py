"""The plugin that brings the llama.cpp adapter and its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.cli import LazyCommand
from xlm_plugin.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable

    import click

    from xlm_plugin.backend import Backend
    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.profile import Measurement, MeasurementRequest

_CONTROL = "xlm_llamacpp.commands.control"
COMMANDS = (
    LazyCommand("engine", "xlm_llamacpp.commands.engine:command", "Build, list and remove engines."),
    LazyCommand("ps", f"{_CONTROL}:ps", "List the engines that run."),
    LazyCommand("stats", f"{_CONTROL}:stats", "Show what a running engine's device counts."),
    LazyCommand("budget", f"{_CONTROL}:budget", "Give a running engine another VRAM budget."),
    LazyCommand("pause", f"{_CONTROL}:pause", "Hold a running engine before its next step."),
    LazyCommand("resume", f"{_CONTROL}:resume", "Let a paused engine go on."),
    LazyCommand("park", f"{_CONTROL}:park", "Take a running engine's weights out of VRAM."),
    LazyCommand("wake", f"{_CONTROL}:wake", "Bring a parked engine's weights back."),
)


@hookimpl
def xlm_backends() -> Iterable[Backend]:
    """Return the llama.cpp adapter."""
    from xlm_llamacpp.backend import LlamaCppBackend

    return [LlamaCppBackend()]


@hookimpl
def xlm_measure(machine: Machine, request: MeasurementRequest) -> Iterable[Measurement]:
    """Measure with the engine's own kernels."""
    from xlm_llamacpp.measure import measure

    return measure(machine, request)


@hookimpl
def xlm_commands(cli: click.Group) -> None:
    """Add the commands that build and control engines."""
    for command in COMMANDS:
        cli.add_command(command)
