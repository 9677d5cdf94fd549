"""``xlm ps`` and the commands that look at a running engine's device and change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._output import out, print_json
from xlm_plugin.errors import XlmError
from xlm_plugin.units import format_bytes, parse_bytes

if TYPE_CHECKING:
    from xlm_llamacpp.control import DeviceControl
    from xlm_llamacpp.runtime import RunningEngine
    from xlm_plugin.backend import DeviceStats

_engine = click.argument("engine", metavar="ENGINE")
_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@_json
def ps(as_json: bool) -> None:
    """List the engines that run."""
    from rich.table import Table

    from xlm_llamacpp.runtime import running_engines

    engines = running_engines()
    if as_json:
        print_json([_document(engine) for engine in engines])
        return
    if not engines:
        click.echo("No engine runs. Start one with 'xlm serve MODEL'.", err=True)
        return
    table = Table(box=None, pad_edge=False)
    # Narrow terminals break names, and never what is copied from here.
    table.add_column("pid", no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("device", min_width=len("(emulated)"))
    for heading in ("VRAM", "state", "url"):
        table.add_column(heading, no_wrap=True)
    for engine in engines:
        record = engine.record
        device = f"{record.device} (emulated)" if record.emulated else record.device
        counted = _counted(engine)
        vram = _share(counted.device_bytes, counted.budget_bytes) if counted else "?"
        table.add_row(str(record.pid), record.name, device, vram, _state(counted), record.url)
    out().print(table)


@click.command()
@_engine
@_json
def stats(engine: str, as_json: bool) -> None:
    """Show what the device of ENGINE counts.

    ENGINE is a process id, the name that it was started by, or its model's name.
    """
    counted = _control(engine).stats()
    if as_json:
        print_json(counted)
    else:
        _print_stats(counted)


@click.command()
@_engine
@click.argument("size")
def budget(engine: str, size: str) -> None:
    """Let ENGINE take at most SIZE of VRAM, such as 4GiB, from its next step on."""
    _print_stats(_control(engine).set_budget(parse_bytes(size)))


@click.command()
@_engine
def pause(engine: str) -> None:
    """Hold ENGINE before its next step."""
    control = _control(engine)
    control.pause()
    _print_state(control)


@click.command()
@_engine
def resume(engine: str) -> None:
    """Let ENGINE go on after a pause."""
    control = _control(engine)
    control.resume()
    _print_state(control)


@click.command()
@_engine
def park(engine: str) -> None:
    """Take the weights of ENGINE out of VRAM and hold it; its requests wait."""
    control = _control(engine)
    control.park()
    _print_state(control)


@click.command()
@_engine
def wake(engine: str) -> None:
    """Bring the weights of ENGINE back after a park and let it go on."""
    control = _control(engine)
    control.wake()
    _print_state(control)


def _control(pid_or_name: str) -> DeviceControl:
    from xlm_llamacpp.control import DeviceControl
    from xlm_llamacpp.runtime import find_running

    return DeviceControl(find_running(pid_or_name).socket)


def _print_state(control: DeviceControl) -> None:
    counted = control.stats()
    vram = f"{format_bytes(counted.device_bytes)} of {format_bytes(counted.budget_bytes)}"
    click.echo(f"It is {counted.state} and holds {vram}.", err=True)


def _counted(engine: RunningEngine) -> DeviceStats | None:
    """Return what the device counts, or None where it does not answer, as while a model loads."""
    from xlm_llamacpp.control import DeviceControl

    try:
        return DeviceControl(engine.socket, timeout_seconds=2).stats()
    except XlmError:
        return None


def _state(counted: DeviceStats | None) -> str:
    return counted.state if counted else "silent"


def _document(engine: RunningEngine) -> dict[str, object]:
    from dataclasses import asdict

    counted = _counted(engine)
    return {
        **asdict(engine.record),
        "device_bytes": counted and counted.device_bytes,
        "budget_bytes": counted and counted.budget_bytes,
        "state": _state(counted),
    }


def _share(part_bytes: int, whole_bytes: int) -> str:
    """Return both sizes in the unit of the whole: ``"46.93 / 96.00 MiB"``."""
    unit = format_bytes(whole_bytes).partition(" ")[2]
    scale = parse_bytes(f"1{unit}")
    digits = 0 if unit == "B" else 2
    return f"{part_bytes / scale:.{digits}f} / {whole_bytes / scale:.{digits}f} {unit}"


def _print_stats(counted: DeviceStats) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_row("state", counted.state)
    table.add_row("budget", format_bytes(counted.budget_bytes))
    for kind, size_bytes in counted.ledger_bytes.items():
        table.add_row(f"  {kind.replace('_', ' ')}", format_bytes(size_bytes))
    table.add_row("on the device", format_bytes(counted.device_bytes))
    table.add_row("resident shards", f"{counted.resident_shards} ({counted.demoted_shards} demoted)")
    steps = ", ".join(f"{count} to {new_tokens} tokens" for new_tokens, count in counted.steps.items())
    table.add_row("steps", steps or "none")
    table.add_row("over the link", f"{format_bytes(counted.link_bytes)} in {counted.link_seconds:.2f} s")
    table.add_row("prefetches", f"{counted.prefetch_hits} in time, {counted.prefetch_waits} late")
    table.add_row("waited", f"{counted.wait_seconds:.2f} s")
    out().print(table)
