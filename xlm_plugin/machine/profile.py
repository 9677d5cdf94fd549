"""Measured rates of a machine. A profile without measurements only describes the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import datetime

    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.rates import Rates


@dataclass(frozen=True, slots=True)
class MeasurementRequest:
    """One op to measure: ggml's name of it, weight type, shape (row length first), tokens and threads."""

    op: str
    type: str
    shape: tuple[int, ...]
    new_tokens: int
    threads: int = 0


@dataclass(frozen=True, slots=True)
class Measurement:
    """The answer to a request: median seconds, half the interquartile range, who measured it, and when."""

    request: MeasurementRequest
    seconds: float
    spread_seconds: float
    source: str
    date: datetime.date


@dataclass(frozen=True, slots=True)
class Profile:
    """A machine and what was measured on it.

    ``rates`` are those of a described machine, which nobody measured here.
    """

    machine: Machine
    measurements: tuple[Measurement, ...] = ()
    rates: Rates | None = None
