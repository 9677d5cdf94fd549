"""Speed against VRAM, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table

from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.curve import BudgetCurve

_BAR_CELLS = 40


def print_curve(console: Console, model: ModelGraph, device: Device, curve: BudgetCurve) -> None:
    """Print a row for each budget, with a bar of its decode speed, and mark the knee."""
    emulated = " (emulated)" if device.emulated else ""
    console.print(f"{model.name} ({model.architecture}) on {device.name}{emulated}", style="bold")
    cell = "#" if console.options.ascii_only else "\u2588"
    fastest = max(point.tokens_per_s for point in curve.points)
    table = Table(box=SIMPLE, show_edge=False)
    for heading in ("budget", "resident weights", "first token s", "tokens/s"):
        table.add_column(heading, justify="right")
    table.add_column("decode")
    for point in curve.points:
        bar = cell * max(1, round(_BAR_CELLS * point.tokens_per_s / fastest))
        table.add_row(
            format_bytes(point.budget_bytes),
            format_bytes(point.resident_weight_bytes),
            f"{point.first_token_seconds:.3g}",
            f"{point.tokens_per_s:.3g}",
            bar + (" knee" if point is curve.knee else ""),
        )
    console.print(table)
    console.print(
        "Note: Speeds are predicted, for a prompt of 1024 tokens and an answer of 256 where they fit."
    )
