"""Measured rates of a machine. A profile without measurements only describes the machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import datetime

    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.rates import Rates

Side = Literal["host", "device"]

# Ops beside ggml's own. Copies have the type "pinned" or "pageable", disk reads "cold" or "warm".
UPLOAD: Final = "UPLOAD"
DOWNLOAD: Final = "DOWNLOAD"
HOST_READ: Final = "HOST_READ"
CROSSING: Final = "CROSSING"
DISK_READ: Final = "DISK_READ"


@dataclass(frozen=True, slots=True)
class MeasurementRequest:
    """One op to measure: ggml's name of it, weight type, shape (row length first), tokens and threads.

    Shapes: ``MUL_MAT`` (width, rows), ``MUL_MAT_ID`` (width, rows, experts, selected),
    ``FLASH_ATTN_EXT`` (head width, heads, KV heads, cells), small ops (width), copies and reads (bytes).
    ``beside_copy`` measures it while something is copied to the device; the copies themselves are then
    measured while the host or the device computes.
    """

    op: str
    type: str
    shape: tuple[int, ...]
    new_tokens: int = 1
    threads: int = 0
    on: Side = "host"
    beside_copy: bool = False


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

    ``rates`` are those of a described machine, which nobody measured here. ``changes`` are sentences on
    what is no longer as it was when the measurements were taken.
    """

    machine: Machine
    measurements: tuple[Measurement, ...] = ()
    rates: Rates | None = None
    changes: tuple[str, ...] = ()

    @property
    def is_measured(self) -> bool:
        """Whether anything was measured on the machine."""
        return bool(self.measurements)
