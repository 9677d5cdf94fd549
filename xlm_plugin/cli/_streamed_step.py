"""A measured step that streams, against what no step can be quicker than."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedStep:
    """A step at one link speed.

    ``link_seconds`` is the time that the link needs for what the step streams, ``compute_seconds`` that of
    the same step where nothing waits for the link.
    """

    link_bytes_per_s: float
    link_seconds: float
    compute_seconds: float
    step_seconds: float

    @property
    def ratio(self) -> float:
        """The measured step over max(link, compute): 1 hides all there is to hide."""
        return self.step_seconds / max(self.link_seconds, self.compute_seconds)

    def document(self) -> dict[str, object]:
        """Return all fields and the ratio."""
        return {**asdict(self), "ratio": self.ratio}
