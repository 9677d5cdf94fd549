"""Drawings of a plan, as SVG. Colours are classes, which the page gives a light and a dark value."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from xlm_plugin.plan.explain import milliseconds
from xlm_plugin.units import GIB, format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from xlm_plugin.plan.curve import BudgetCurve, CurvePoint
    from xlm_plugin.plan.document import Tier
    from xlm_plugin.plan.simulated import SimulatedPlan

WIDTH = 960.0
_LABEL_WIDTH = 96.0
_LANE_HEIGHT, _LANE_GAP = 26.0, 8.0
_CELL_HEIGHT, _CELL_GAP = 18.0, 2.0


def layer_map(simulated: SimulatedPlan, tier: Tier) -> str:
    """Return layers by kinds of shards, coloured by placement; what is in no layer has a row of its own."""
    shards = simulated.shards
    layers = sorted({shard.layer for shard in shards if shard.layer is not None})
    rows = list(dict.fromkeys(shard.name if shard.layer is None else shard.kind for shard in shards))
    cell_width = (WIDTH - _LABEL_WIDTH) / max(1, len(layers))
    gap = min(_CELL_GAP, cell_width / 4)
    pitch = _CELL_HEIGHT + _CELL_GAP
    parts = [_text(0, row * pitch + 13, name) for row, name in enumerate(rows)]
    for shard in shards:
        placement = tier.placements[shard.name]
        if shard.layer is None:
            left, width, row = _LABEL_WIDTH, WIDTH - _LABEL_WIDTH, rows.index(shard.name)
        else:
            left = _LABEL_WIDTH + layers.index(shard.layer) * cell_width
            width, row = cell_width, rows.index(shard.kind)
        title = f"{shard.name}, {format_bytes(shard.movable_bytes)}: {placement}"
        parts.append(_rect(left, row * pitch, width - gap, _CELL_HEIGHT, placement, title))
    return _svg(
        len(rows) * pitch, parts, f"Placement of each shard in steps of up to {tier.new_tokens} tokens"
    )


def step_timeline(simulated: SimulatedPlan, new_tokens: int) -> str:
    """Return one step as three lanes over time: link, accelerator and host."""
    times = simulated.timeline(new_tokens)
    step = simulated.step(new_tokens)
    scale = (WIDTH - _LABEL_WIDTH) / max(step.step_seconds, 1e-12)
    lanes = {"link": 0, "device": 1, "host": 2}
    titles = {"link": "link", "device": "accelerator", "host": "CPU"}
    bottom = len(lanes) * (_LANE_HEIGHT + _LANE_GAP)
    parts = []
    for resource, row in lanes.items():
        top = row * (_LANE_HEIGHT + _LANE_GAP)
        parts.append(_text(0, top + 12, titles[resource]))
        parts.append(_text(0, top + 24, f"{step.utilisation[resource]:.0%} busy", "faint"))  # type: ignore[index]
        parts.append(_rect(_LABEL_WIDTH, top, WIDTH - _LABEL_WIDTH, _LANE_HEIGHT, "lane"))

    def span(resource: str, begin: float, end: float, title: str) -> str:
        top = lanes[resource] * (_LANE_HEIGHT + _LANE_GAP)
        left, width = _LABEL_WIDTH + begin * scale, (end - begin) * scale
        shown = f"{title}, {milliseconds(end - begin)}"
        return _rect(left, top, max(0.3, width - min(0.6, width / 4)), _LANE_HEIGHT, resource, shown)

    for shard, when in zip(simulated.shards, times, strict=True):
        if when.copy_end > when.copy_begin:
            parts.append(span("link", when.copy_begin, when.copy_end, f"copy {shard.name}"))
        at = when.begin + when.crossing_seconds
        for resource, seconds in (("host", when.host_seconds), ("device", when.device_seconds)):
            if seconds > 0:
                parts.append(span(resource, at, at + seconds, shard.name))
                at += seconds
    for quarter in range(5):
        x = _LABEL_WIDTH + quarter * (WIDTH - _LABEL_WIDTH) / 4
        anchor = "end" if quarter == 4 else "middle" if quarter else "start"
        parts.append(_text(x, bottom + 12, milliseconds(step.step_seconds * quarter / 4), "faint", anchor))
    return _svg(bottom + 18, parts, f"One step of {new_tokens} new tokens: link, accelerator and CPU")


def curve_chart(
    curve: BudgetCurve, value: Callable[[CurvePoint], float], title: str, budget_bytes: int
) -> str:
    """Return ``value`` against the budget; the knee and the plan's own budget are marked."""
    width, height, left, bottom = 470.0, 220.0, 44.0, 190.0
    points = curve.points
    first, last = points[0].budget_bytes, max(points[-1].budget_bytes, points[0].budget_bytes + 1)
    top_value = max(map(value, points)) or 1.0

    def x(size_bytes: float) -> float:
        return left + (width - left - 12) * (size_bytes - first) / (last - first)

    def y(amount: float) -> float:
        return bottom - (bottom - 30) * amount / top_value

    parts = [_text(0, 12, title, "title")]
    for step in range(5):
        amount = top_value * step / 4
        parts.append(
            f'<line class="grid" x1="{left}" x2="{width}" y1="{y(amount):.1f}" y2="{y(amount):.1f}"/>'
        )
        parts.append(_text(left - 6, y(amount) + 4, f"{amount:.3g}", "faint", "end"))
    for step in range(5):
        size_bytes = first + (last - first) * step / 4
        anchor = "end" if step == 4 else "middle"
        parts.append(_text(x(size_bytes), bottom + 16, f"{size_bytes / GIB:.3g}", "faint", anchor))
    parts.append(_text(width, bottom + 28, "budget, GiB", "faint", "end"))
    if first <= budget_bytes <= last:
        at = x(budget_bytes)
        parts.append(_line("budget", at, 26, at, bottom))
        fits = at < width - 70
        parts.append(_text(at + (4 if fits else -4), 36, "this plan", "faint", "start" if fits else "end"))
    path = " ".join(f"{x(point.budget_bytes):.1f},{y(value(point)):.1f}" for point in points)
    parts.append(f'<polyline class="curve" points="{path}"/>')
    for point in points:
        knee = point is curve.knee
        where = f"{format_bytes(point.budget_bytes)}: {value(point):.3g}{', the knee' if knee else ''}"
        parts.append(
            f'<circle class="{"knee" if knee else "point"}" cx="{x(point.budget_bytes):.1f}" '
            f'cy="{y(value(point)):.1f}" r="{5 if knee else 3}"><title>{escape(where)}</title></circle>'
        )
    return _svg(height + 4, parts, title, width)


def _rect(x: float, y: float, width: float, height: float, kind: str, title: str = "") -> str:
    inside = f"<title>{escape(title)}</title>" if title else ""
    radius = min(2.0, width / 3)
    return (
        f'<rect class="{kind}" x="{x:.2f}" y="{y:.1f}" width="{width:.2f}" height="{height:.1f}" '
        f'rx="{radius:.1f}">{inside}</rect>'
    )


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "label", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, parts: Iterable[str], title: str, width: float = WIDTH) -> str:
    return (
        f'<svg viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title, quote=True)}">'
        f"{''.join(parts)}</svg>"
    )
