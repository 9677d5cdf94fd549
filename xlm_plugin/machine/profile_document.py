"""The profile document ``xlm.profile/1``: one machine and compact rows of measurements."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from xlm_plugin.errors import ProfileError
from xlm_plugin.machine.identity import MachineIdentity, known_fields
from xlm_plugin.machine.profile import Measurement, MeasurementRequest
from xlm_plugin.text_files import read_text, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FORMAT: Final = "xlm.profile/1"
_COLUMNS: Final = (
    "op", "type", "shape", "new_tokens", "threads", "on", "beside_copy", "ns", "spread_ns", "origin",
)  # fmt: skip
# From a tenth of a nanosecond to an hour.
_LEAST_NS, _MOST_NS = 0.1, 3.6e12


def is_plausible(seconds: float) -> bool:
    """Whether anything can take ``seconds``."""
    return _LEAST_NS <= seconds * 1e9 <= _MOST_NS


@dataclass(frozen=True, slots=True)
class ProfileDocument:
    """Measurements and the machine that they were taken on."""

    identity: MachineIdentity
    measurements: tuple[Measurement, ...]

    def merged(self, newer: Iterable[Measurement]) -> ProfileDocument:
        """Return the document with ``newer`` rows, which replace those of equal requests."""
        rows = {row.request: row for row in self.measurements}
        rows.update((row.request, row) for row in newer)
        return ProfileDocument(self.identity, tuple(rows.values()))

    def to_json(self) -> str:
        """Return the document: a row a line. Sources and dates are written once and named by number."""
        origins: dict[tuple[str, str], int] = {}
        rows = []
        for each in sorted(self.measurements, key=_order):
            request = each.request
            origin = origins.setdefault((each.source, each.date.isoformat()), len(origins))
            row = [
                request.op, request.type, list(request.shape), request.new_tokens, request.threads,
                request.on, int(request.beside_copy), _compact(each.seconds), _compact(each.spread_seconds),
                origin,
            ]  # fmt: skip
            rows.append(json.dumps(row, separators=(",", ":")))
        head = {
            "format": FORMAT,
            "machine": self.identity.to_json(),
            "origins": [list(origin) for origin in origins],
            "columns": list(_COLUMNS),
        }
        body = ",\n".join(rows)
        return f'{json.dumps(head)[:-1]}, "rows": [\n{body}\n]}}\n'

    @classmethod
    def from_json(cls, text: str) -> ProfileDocument:
        """Return the document in ``text``. Raises ProfileError with the first fault found."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise _malformed("it is cut short, or no JSON") from None
        found = document.get("format") if isinstance(document, dict) else None
        if found != FORMAT:
            raise ProfileError(
                f"The profile is of version '{found}'; this xlm reads only '{FORMAT}'."
                if found
                else f"This is not a profile: it has no format, such as '{FORMAT}'.",
                "Measure this machine with 'xlm profile --again'.",
            )
        try:
            if document["columns"] != list(_COLUMNS):
                raise _malformed("its columns are others")
            identity = _identity(document["machine"])
            origins = [(str(source), datetime.date.fromisoformat(day)) for source, day in document["origins"]]
            return cls(identity, tuple(_row(row, origins) for row in document["rows"]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise _malformed(f"{type(error).__name__}: {error}") from None

    @classmethod
    def read(cls, path: Path) -> ProfileDocument:
        """Return the document in the file ``path``. Raises ProfileError."""
        return cls.from_json(read_text(path, "profile", ProfileError))

    def write(self, path: Path) -> None:
        """Write the document to ``path``, whole or not at all. Raises ProfileError where that fails."""
        write_text(path, self.to_json(), "profile", ProfileError)


def _identity(document: dict[str, Any]) -> MachineIdentity:
    if unknown := set(document) - known_fields():
        raise _malformed(f"its machine has an unknown '{min(unknown)}'")
    return MachineIdentity(**document)


def _row(row: list[Any], origins: list[tuple[str, datetime.date]]) -> Measurement:
    op, kind, shape, new_tokens, threads, on, beside_copy, nanoseconds, spread, origin = row
    extents = (*shape, new_tokens)
    whole = all(type(extent) is int and 0 < extent < 2**63 for extent in extents)
    if not (whole and type(threads) is int and threads >= 0 and on in ("host", "device")):
        raise _malformed(f"the row {row} is not one")
    if not is_plausible(nanoseconds * 1e-9) or not 0 <= spread < math.inf:
        raise _malformed(f"{op} {kind} {shape} is said to take {nanoseconds} ns")
    source, date = origins[origin]
    request = MeasurementRequest(str(op), str(kind), tuple(shape), new_tokens, threads, on, bool(beside_copy))
    return Measurement(request, nanoseconds * 1e-9, spread * 1e-9, source, date)


def _malformed(fault: str) -> ProfileError:
    return ProfileError(
        f"The profile cannot be used: {fault}.", "Measure this machine with 'xlm profile --again'."
    )


def _compact(seconds: float) -> float | int:
    """Return ``seconds`` in nanoseconds with four digits."""
    nanoseconds = float(f"{seconds * 1e9:.4g}")
    return int(nanoseconds) if nanoseconds.is_integer() else nanoseconds


def _order(each: Measurement) -> tuple[str, str, str, int, tuple[int, ...], bool, int]:
    request = each.request
    return (
        request.op, request.type, request.on, request.threads, request.shape, request.beside_copy,
        request.new_tokens,
    )  # fmt: skip
