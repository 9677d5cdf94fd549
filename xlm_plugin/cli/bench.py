"""``xlm bench``: what is promised, measured here."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._output import out, print_json
from xlm_plugin.cli._planning import PlanningOptions, plan_model
from xlm_plugin.plugins import get_plugin_manager

if TYPE_CHECKING:
    from xlm_plugin.cli._device_bench import DeviceBench
    from xlm_plugin.machine.document import Device
    from xlm_plugin.plugins import PluginManager

LINKS_GB_PER_S = (1.0, 2.0, 4.0, 16.0)


class _Benchmarks(click.Group):
    """A group with the core's benchmarks and those of plugins."""

    _asked: PluginManager | None = None

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._ask_plugins()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        self._ask_plugins()
        return super().get_command(ctx, cmd_name)

    def _ask_plugins(self) -> None:
        manager = get_plugin_manager()
        if manager is not self._asked:
            self._asked = manager
            manager.hook.xlm_benchmarks(bench=self)


@click.group("bench", cls=_Benchmarks)
def command() -> None:
    """Measure what is promised. Machines are noisy: each figure is a median of rounds in one run."""


@command.command("device")
@click.argument("model", default="demo")
@click.option(
    "--ctx", type=click.IntRange(min=1), default=1024, metavar="TOKENS", help="Context. [default: 1024]"
)
@click.option(
    "--ubatch", type=click.IntRange(min=1), default=64, metavar="TOKENS", help="Largest step. [default: 64]"
)
@click.option("--device", metavar="NAME", help="A device of this machine, or emulated[:GBps].")
@click.option(
    "--threads", type=click.IntRange(min=1), default=1, metavar="N", help="CPU threads. [default: 1]"
)
@click.option(
    "--rounds",
    type=click.IntRange(min=1),
    default=5,
    metavar="N",
    help="Runs of each, at least. [default: 5]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def device_command(
    model: str, ctx: int, ubatch: int, device: str | None, threads: int, rounds: int, as_json: bool
) -> int:
    """Measure the device on MODEL: everything resident against the bare device, and FFN or experts streamed.

    An emulated link is measured at several speeds. The exit code is 1 where tokens differ from the
    bare device's.
    """
    from xlm_plugin.backend import LaunchOptions
    from xlm_plugin.cli._device_bench import DeviceBencher
    from xlm_plugin.cli._launch import orderly_end, ready_backend

    planned = plan_model(model, PlanningOptions(vram="1024GiB", ctx=ctx, ubatch=ubatch, device=device))
    options = LaunchOptions(threads=threads, device=planned.device)
    bencher = DeviceBencher(
        ready_backend(planned), planned.model, planned.plan, options, rounds, _show_progress
    )
    with orderly_end():
        bench = bencher.run(_links(planned.device))
    if as_json:
        print_json(_document(planned.device, bench))
    else:
        _print(planned.device, bench)
    return 0 if bench.tokens_identical else 1


def _show_progress(step: str) -> None:
    click.echo(f"Measuring {step} ...", err=True)


def _links(device: Device) -> list[float]:
    if device.emulated:
        return [speed * 1e9 for speed in LINKS_GB_PER_S]
    return [device.link_bytes_per_s] if device.link_bytes_per_s else []


def _document(device: Device, bench: DeviceBench) -> dict[str, object]:
    return {
        "device": device.name,
        "emulated": device.emulated,
        "resident": {
            "prefill": bench.resident_prefill.median,
            "decode": bench.resident_decode.median,
            "rounds": bench.resident_decode.rounds,
            "prefill_interval": _finite(bench.resident_prefill.interval),
            "decode_interval": _finite(bench.resident_decode.interval),
        },
        "pipeline": [row.document() for row in bench.pipeline],
        "park_seconds": bench.park_seconds,
        "wake_steps": bench.wake_steps,
        "tokens_identical": bench.tokens_identical,
    }


def _finite(interval: float) -> float | None:
    """Return ``interval``, or None where there were too few rounds for one: JSON has no infinity."""
    return interval if math.isfinite(interval) else None


def _print(device: Device, bench: DeviceBench) -> None:
    from rich.table import Table

    table = Table(
        title=f"streamed steps on {device.name}{' (emulated)' if device.emulated else ''}", box=None
    )
    for heading in ("phase", "link GB/s", "link ms", "compute ms", "step ms", "step / bound"):
        table.add_column(heading, justify="left" if heading == "phase" else "right")
    for row in bench.pipeline:
        milliseconds = (row.link_seconds, row.compute_seconds, row.step_seconds)
        table.add_row(
            row.phase,
            f"{row.link_bytes_per_s / 1e9:g}",
            *(f"{1e3 * seconds:.2f}" for seconds in milliseconds),
            f"{row.ratio:.2f}",
        )
    out().print(table)
    out().print(
        f"everything resident: prefill {bench.resident_prefill}, decode {bench.resident_decode} "
        f"of the bare device's speed ({bench.resident_decode.rounds} pairs)"
    )
    out().print(
        f"park {1e3 * bench.park_seconds:.1f} ms, first token after wake {bench.wake_steps:.1f} steps"
    )
    out().print(f"tokens identical to the bare device: {'yes' if bench.tokens_identical else 'no'}")
