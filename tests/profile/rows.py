"""Measurements made up of a rule, so that what they stand for is known."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from xlm_plugin.machine.profile import CROSSING, UPLOAD, Measurement, MeasurementRequest

if TYPE_CHECKING:
    from xlm_plugin.machine.profile import Side

DATE = datetime.date(2026, 8, 1)
THREADS = 4


def row(
    op: str,
    kind: str,
    shape: tuple[int, ...],
    new_tokens: int,
    seconds: float,
    *,
    on: Side = "host",
    beside_copy: bool = False,
    threads: int = THREADS,
) -> Measurement:
    """Return one measurement of ours."""
    request = MeasurementRequest(op, kind, shape, new_tokens, threads, on, beside_copy)
    return Measurement(request, seconds, seconds / 50, "a test", DATE)


def machine_rows(kinds: tuple[str, ...] = ("Q4_0", "F16")) -> tuple[Measurement, ...]:
    """Return rows of a device that computes a weight in a picosecond, a tenth of the host's time."""
    rows = [row(CROSSING, "", (4096,), 1, 1e-4), row(UPLOAD, "pinned", (1 << 24,), 1, 1e-3)]
    for on, each in (("host", 1e-11), ("device", 1e-12)):
        for kind in kinds:
            for side in (64, 1024):
                for tokens in (1, 64):
                    seconds = each * side * side * tokens
                    rows.append(row("MUL_MAT", kind, (side, side), tokens, seconds, on=on))  # type: ignore[arg-type]
        rows.append(row("ADD", "F32", (64,), 1, each * 512, on=on))  # type: ignore[arg-type]
    return tuple(rows)
