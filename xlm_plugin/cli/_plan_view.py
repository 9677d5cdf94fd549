"""A plan as people read it: what lies where, what it takes and how fast it should be."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table

from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import Console

    from xlm_plugin.model.graph import ModelGraph, ShardKind
    from xlm_plugin.plan.document import Plan, PlannedShard, Tier

_BAR_CELLS = 40
_PARTS = (
    ("resident weights", "resident_weight_bytes", "green"),
    ("small weights", "small_weight_bytes", "green"),
    ("staging", "staging_bytes", "cyan"),
    ("KV cache", "kv_bytes", "yellow"),
    ("recurrent state", "state_bytes", "yellow"),
    ("compute buffers", "compute_bytes", "magenta"),
    ("projector", "projector_bytes", "blue"),
    ("driver", "driver_bytes", "red"),
)


def print_plan(console: Console, plan: Plan, model: ModelGraph, *, speeds: bool = True) -> None:
    """Print the placements, the ledger against the budget and the notes of ``plan``.

    Without ``speeds``, which nobody measured, bytes are all that it promises.
    """
    emulated = " (emulated)" if plan.emulated else ""
    console.print(
        f"{plan.model.name} ({plan.model.architecture}) on {plan.device}{emulated}, "
        f"{plan.context.tokens} tokens of context, budget {format_bytes(plan.budget_bytes)}",
        style="bold",
    )
    console.print(_placements(plan, model, speeds=speeds))
    console.print(_ledger(plan, cell="#" if console.options.ascii_only else "\u2588"))
    for note in plan.notes:
        console.print(f"Note: {note}")
    if not speeds:
        console.print(f"Note: Speeds were not measured: run 'xlm profile --device {plan.device}'.")


def _placements(plan: Plan, model: ModelGraph, *, speeds: bool) -> Table:
    table = Table(box=SIMPLE, show_edge=False)
    table.add_column("shards")
    table.add_column("count", justify="right")
    table.add_column("bytes", justify="right")
    for title in _tier_titles(plan):
        table.add_column(title)
    for kind, shards in _groups(plan, model):
        size_bytes = sum(shard.bytes for shard in shards)
        placements = [_counts(tier, shards) for tier in plan.tiers]
        table.add_row(kind, str(len(shards)), format_bytes(size_bytes), *placements)
    table.add_section()
    table.add_row("strategy", "", "", *(tier.strategy for tier in plan.tiers))
    table.add_row("over the link", "", "", *(_link(tier) for tier in plan.tiers))
    if speeds:
        table.add_row("predicted ms", "", "", *(_milliseconds(tier) for tier in plan.tiers))
        table.add_row("tokens/s", "", "", *(_tokens_per_s(tier) for tier in plan.tiers))
    return table


def _tier_titles(plan: Plan) -> list[str]:
    edges = [str(tier.new_tokens) for tier in plan.tiers]
    return [
        "decode",
        *(f"to {edge}" for edge in edges[1:-1]),
        *(f"prefill, to {edge}" for edge in edges[1:][-1:]),
    ]


def _groups(plan: Plan, model: ModelGraph) -> Iterator[tuple[ShardKind, list[PlannedShard]]]:
    kinds = {shard.name: shard.kind for shard in model.shards}
    groups: dict[ShardKind, list[PlannedShard]] = {}
    for shard in plan.shards:
        groups.setdefault(kinds[shard.name], []).append(shard)
    yield from groups.items()


def _counts(tier: Tier, shards: Iterable[PlannedShard]) -> str:
    counts = Counter(tier.placements[shard.name] for shard in shards)
    return ", ".join(f"{counts[place]} {place}" for place in ("pin", "stream", "cpu") if counts[place])


def _link(tier: Tier) -> str:
    return format_bytes(tier.prediction.link_bytes) if tier.prediction else "?"


def _milliseconds(tier: Tier) -> str:
    return _number(tier.prediction.step_seconds * 1e3) if tier.prediction else "?"


def _tokens_per_s(tier: Tier) -> str:
    return _number(tier.new_tokens / tier.prediction.step_seconds) if tier.prediction else "?"


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _ledger(plan: Plan, cell: str) -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column()
    parts = [(title, getattr(plan.ledger, name), style) for title, name, style in _PARTS]
    parts.append(("not used", plan.budget_bytes - plan.ledger.total_bytes, "dim"))
    for title, size_bytes, style in parts:
        if size_bytes:
            cells = round(_BAR_CELLS * size_bytes / plan.budget_bytes)
            table.add_row(title, format_bytes(size_bytes), cell * max(1, cells), style=style)
    table.add_row("budget", format_bytes(plan.budget_bytes), cell * _BAR_CELLS, style="bold")
    return table
