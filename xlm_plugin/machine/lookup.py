"""Seconds of an op from measured rows: exact, else interpolated along tokens and size."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xlm_plugin.machine.profile import Measurement, MeasurementRequest, Side

    Point = tuple[float, float]
    Key = tuple[Side, str, str]

_SMALL_OPS = ("RMS_NORM", "ADD", "SWIGLU")


class Lookup:
    """Measured rows with ``threads`` threads. Nothing is answered from another op, type or side.

    Between measured tokens and sizes the logarithm of the seconds is interpolated along their logarithms.
    Beyond the largest, seconds grow as fast as the work; below the smallest size they shrink with it, but
    never below what the smallest op takes.
    """

    def __init__(self, measurements: Iterable[Measurement], threads: int) -> None:
        rows: dict[Key, dict[tuple[int, ...], list[Point]]] = defaultdict(lambda: defaultdict(list))
        beside: dict[tuple[Side, str, str, tuple[int, ...], int], float] = {}
        for each in measurements:
            request = each.request
            if request.threads not in (0, threads):
                continue
            if request.beside_copy:
                beside[_flat(request)] = each.seconds
            else:
                key = (request.on, request.op, request.type)
                rows[key][request.shape].append((request.new_tokens, each.seconds))
        self._rows = {
            key: {shape: sorted(points) for shape, points in shapes.items()} for key, shapes in rows.items()
        }
        self._beside = beside
        self._found: dict[tuple[Side, str, str, tuple[int, ...], int], float | None] = {}

    def seconds(
        self, on: Side, op: str, kind: str, shape: tuple[int, ...], new_tokens: int = 1
    ) -> float | None:
        """Return the seconds of one op, or None where nothing of that op and type was measured."""
        # A model asks for the same few shapes in each layer.
        key = (on, op, kind, shape, new_tokens)
        if key not in self._found:
            self._found[key] = self._seconds(*key)
        return self._found[key]

    def _seconds(self, on: Side, op: str, kind: str, shape: tuple[int, ...], new_tokens: int) -> float | None:
        shapes = self._rows.get((on, op, kind))
        if not shapes:
            return None
        if shape in shapes:
            return _interpolated(shapes[shape], new_tokens, least=0.0)
        sizes = sorted(
            (work(op, known), _interpolated(points, new_tokens, least=0.0))
            for known, points in shapes.items()
        )
        return _interpolated(_distinct(sizes), work(op, shape), least=self.least_seconds(on), shrinks=True)

    def least_seconds(self, on: Side) -> float:
        """Return what the smallest measured op takes: no op takes less."""
        return self._least.get(on, 0.0)

    @cached_property
    def _least(self) -> dict[Side, float]:
        least: dict[Side, float] = {}
        for (on, op, _), shapes in self._rows.items():
            if op in _SMALL_OPS:
                seconds = min(points[0][1] for points in shapes.values())
                least[on] = min(least.get(on, math.inf), seconds)
        return least

    def kept_share(self, on: Side) -> float | None:
        """Return the share of its speed that a side keeps beside a copy; None where that was not measured."""
        shares = []
        for key, seconds in self._beside.items():
            side, op, kind, shape, tokens = key
            alone = self.seconds(side, op, kind, shape, tokens)
            if side == on and op == "MUL_MAT" and alone:
                shares.append(min(1.0, alone / seconds))
        return sum(shares) / len(shares) if shares else None


def work(op: str, shape: tuple[int, ...]) -> float:
    """Return what the seconds of ``op`` grow with: elements of its matrices, or of what it attends to."""
    if op == "MUL_MAT_ID":
        width, rows, _, selected = shape
        return float(width * rows * selected)
    return float(math.prod(shape) // shape[2] if op == "FLASH_ATTN_EXT" else math.prod(shape))


def _flat(request: MeasurementRequest) -> tuple[Side, str, str, tuple[int, ...], int]:
    return request.on, request.op, request.type, request.shape, request.new_tokens


def _distinct(points: Sequence[Point]) -> list[Point]:
    """Return sorted ``points`` with one for each place: where several are, the mean of their logarithms."""
    places: dict[float, list[float]] = defaultdict(list)
    for at, seconds in points:
        places[at].append(math.log(seconds))
    return [(at, math.exp(sum(found) / len(found))) for at, found in places.items()]


def _interpolated(points: Sequence[Point], at: float, least: float, *, shrinks: bool = False) -> float:
    """Return the seconds at ``at`` of a curve through sorted ``points``."""
    first, last = points[0], points[-1]
    if at <= first[0]:
        return max(least, first[1] * at / first[0]) if shrinks else first[1]
    if at >= last[0]:
        return last[1] * at / last[0]
    index = bisect_left(points, (at, 0.0))
    (left, low), (right, high) = points[index - 1], points[index]
    share = math.log(at / left) / math.log(right / left)
    return math.exp(math.log(low) * (1 - share) + math.log(high) * share)
