"""The ledger as llama.cpp prints its own: total = free + (self = model + context + compute) + unaccounted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from xlm_plugin.machine.document import Device
    from xlm_plugin.plan.document import Ledger
    from xlm_plugin.plan.memory import MemoryEstimate

_TITLES = ("total", "free", "self", "model", "context", "compute", "unaccounted")
_MARKS = (" = ", " + (", " = ", " + ", " + ", ") + ")
_BLANKS = tuple(" " * len(mark) for mark in _MARKS)


@dataclass(frozen=True, slots=True)
class BreakdownRow:
    """What one memory holds, in bytes; ``total_bytes`` and ``free_bytes`` are None where they say nothing."""

    name: str
    model_bytes: int
    context_bytes: int
    compute_bytes: int
    total_bytes: int | None = None
    free_bytes: int | None = None

    @property
    def self_bytes(self) -> int:
        """What is ours."""
        return self.model_bytes + self.context_bytes + self.compute_bytes

    @property
    def unaccounted_bytes(self) -> int | None:
        """What is neither free nor ours: the driver's, and what others hold."""
        if self.total_bytes is None or self.free_bytes is None:
            return None
        return self.total_bytes - self.free_bytes - self.self_bytes


def device_row(ledger: Ledger, device: Device) -> BreakdownRow:
    """Return what ``device`` will hold under a plan with this ``ledger``."""
    return BreakdownRow(
        name=f"{device.name} ({device.description})",
        model_bytes=ledger.resident_weight_bytes
        + ledger.small_weight_bytes
        + ledger.staging_bytes
        + ledger.projector_bytes,
        context_bytes=ledger.kv_bytes + ledger.state_bytes,
        compute_bytes=ledger.compute_bytes,
        total_bytes=device.memory_bytes,
        free_bytes=device.free_bytes - ledger.total_bytes,
    )


def host_row(memory: MemoryEstimate, displaced_bytes: int = 0) -> BreakdownRow:
    """Return what the host holds: its tables, and ``displaced_bytes`` of weights that are not resident."""
    return BreakdownRow("Host", memory.host_weight_bytes + displaced_bytes, 0, memory.host_compute_bytes)


def ledger_lines(ledger: Ledger, device: Device) -> dict[str, int]:
    """Return our own lines below llama.cpp's columns: what its model and unaccounted columns are made of."""
    return {
        "resident weights": ledger.resident_weight_bytes,
        "small weights": ledger.small_weight_bytes,
        "staging": ledger.staging_bytes,
        "projector": ledger.projector_bytes,
        "driver": ledger.driver_bytes,
        "other, held before": device.memory_bytes - device.free_bytes,
    }


def format_breakdown(rows: Iterable[BreakdownRow], lines: Mapping[str, int] | None = None) -> str:
    """Return the table in whole MiB, with ``lines`` below it; lines of nothing are left out."""
    table = [_Line("memory breakdown [MiB]", _TITLES, _BLANKS), *map(_line, rows)]
    name_width = max(len(line.name) for line in table)
    widths = [max(map(len, column)) for column in zip(*(line.cells for line in table), strict=True)]
    text = [f"| {line.name:<{name_width}} | {line.joined(widths)} |" for line in table]
    text += [f"|     {name}: {_mib(size_bytes)}" for name, size_bytes in (lines or {}).items() if size_bytes]
    return "\n".join(text)


@dataclass(frozen=True, slots=True)
class _Line:
    """Cells, and what stands between them."""

    name: str
    cells: tuple[str, ...]
    marks: tuple[str, ...]

    def joined(self, widths: Sequence[int]) -> str:
        first, *rest = (cell.rjust(width) for cell, width in zip(self.cells, widths, strict=True))
        return first + "".join(mark + cell for mark, cell in zip(self.marks, rest, strict=True))


def _line(row: BreakdownRow) -> _Line:
    amounts = (
        row.total_bytes,
        row.free_bytes,
        row.self_bytes,
        row.model_bytes,
        row.context_bytes,
        row.compute_bytes,
        row.unaccounted_bytes,
    )
    marks = (*_BLANKS[:2], *_MARKS[2:5], _BLANKS[5]) if row.total_bytes is None else _MARKS
    return _Line(f"  - {row.name}", tuple(map(_mib, amounts)), marks)


def _mib(size_bytes: int | None) -> str:
    return "" if size_bytes is None else str(size_bytes // MIB)
