"""A profile as people read it: one line an op and type, with the rates that the rows stand for."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING

from rich.table import Table

from xlm_plugin.machine.profile import CROSSING, DISK_READ, DOWNLOAD, HOST_READ, UPLOAD

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from xlm_plugin.machine.profile import Measurement, MeasurementRequest
    from xlm_plugin.machine.profile_document import ProfileDocument

_READS = (UPLOAD, DOWNLOAD, HOST_READ, DISK_READ)


def print_profile(console: Console, document: ProfileDocument, changes: Iterable[str]) -> None:
    """Print the machine, its changes since, and its rows: of each op and type the largest shape."""
    identity = document.identity
    console.print(
        f"{identity.device}{' (emulated)' if identity.emulated else ''} with {identity.cpu}, "
        f"{identity.threads} threads, {len(document.measurements)} rows",
        style="bold",
    )
    for change in changes:
        console.print(f"Changed: {change}")
    table = Table(box=None)
    for title in ("op", "type", "on", "shape", "new tokens", "rate", "spread", "date"):
        table.add_column(title, justify="right" if title in ("new tokens", "rate", "spread") else "left")
    for each in _shown(document.measurements):
        request = each.request
        table.add_row(
            f"{request.op}{' beside a copy' if request.beside_copy else ''}",
            request.type,
            request.on,
            "x".join(map(str, request.shape)),
            str(request.new_tokens),
            rate_of(each),
            f"{each.spread_seconds / each.seconds:.0%}",
            each.date.isoformat(),
        )
    console.print(table)


def print_difference(console: Console, first: ProfileDocument, second: ProfileDocument) -> None:
    """Print how much longer or shorter each op of ``second`` takes than that of ``first``."""
    if first.identity.name != second.identity.name:
        console.print("These are two machines:", style="bold")
        for identity in (first.identity, second.identity):
            console.print(f"  {identity.device} with {identity.cpu}")
    for change in second.identity.changes_since(first.identity):
        console.print(f"Changed: {change}")
    known = {each.request: each.seconds for each in first.measurements}
    shares: dict[tuple[str, str, str], list[float]] = {}
    for each in second.measurements:
        request = each.request
        if request in known:
            key = (request.op, request.type, request.on)
            shares.setdefault(key, []).append(each.seconds / known[request])
    table = Table(box=None)
    for title in ("op", "type", "on", "rows", "time, second to first"):
        table.add_column(title)
    for (op, kind, on), found in sorted(shares.items()):
        table.add_row(op, kind, on, str(len(found)), f"{statistics.median(found):.2f}")
    console.print(table)


def rate_of(each: Measurement) -> str:
    """Return what the row stands for: bytes or operations a second, or seconds."""
    request, seconds = each.request, each.seconds
    if request.op in _READS:
        return f"{request.shape[0] / seconds / 1e9:.3g} GB/s"
    if operations := _operations(request):
        return f"{operations / seconds / 1e9:.3g} GFLOP/s"
    return f"{seconds * 1e6:.3g} us"


def _operations(request: MeasurementRequest) -> float:
    if request.op == "MUL_MAT":
        return 2.0 * math.prod(request.shape) * request.new_tokens
    if request.op == "MUL_MAT_ID":
        width, rows, _, selected = request.shape
        return 2.0 * width * rows * selected * request.new_tokens
    if request.op == "FLASH_ATTN_EXT":
        width, heads, _, cells = request.shape
        return 4.0 * width * heads * cells * request.new_tokens
    return 0.0


def _shown(measurements: Iterable[Measurement]) -> list[Measurement]:
    largest: dict[tuple[object, ...], Measurement] = {}
    for each in measurements:
        request = each.request
        tokens = request.new_tokens if request.new_tokens == 1 else 2
        key = (request.op, request.type, request.on, request.beside_copy, tokens)
        size = (math.prod(request.shape), request.new_tokens, request.threads)
        found = largest.get(key)
        if found is None or size > (
            math.prod(found.request.shape),
            found.request.new_tokens,
            found.request.threads,
        ):
            largest[key] = each
    order = {op: at for at, op in enumerate((CROSSING, UPLOAD, DOWNLOAD, HOST_READ, DISK_READ))}
    return sorted(largest.values(), key=lambda each: (order.get(each.request.op, 9), each.request.op))
