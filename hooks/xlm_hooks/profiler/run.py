"""Measuring: request after request, until all are answered, the time is up, or someone interrupts."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from xlm_hooks.profiler.disk import measure_disk
from xlm_plugin.machine.profile import DISK_READ
from xlm_plugin.machine.profile_document import is_plausible

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.profile import Measurement, MeasurementRequest
    from xlm_plugin.machine.profile_document import ProfileDocument
    from xlm_plugin.plugins import PluginManager

# An interrupted run loses no more than this.
_SAVE_SECONDS = 5.0


@dataclass
class Session:
    """One run of the profiler over ``requests``.

    ``advance`` is told after each request how many are done, and ``save`` gets the document from time to
    time. ``left`` requests are still open at the end; ``unanswered`` no plugin could measure.
    """

    manager: PluginManager
    machine: Machine
    document: ProfileDocument
    requests: Sequence[MeasurementRequest]
    save: Callable[[ProfileDocument], object]
    advance: Callable[[int], object] = lambda _: None
    left: int = 0
    unanswered: list[MeasurementRequest] = field(default_factory=list)

    def run(self, limit_seconds: float) -> ProfileDocument:
        """Measure and return the document with what is new. KeyboardInterrupt passes after it is saved."""
        end = monotonic() + limit_seconds
        saved_at = monotonic()
        self.left = len(self.requests)
        try:
            for done, request in enumerate(self.requests, 1):
                if monotonic() >= end:
                    break
                found = self._measure(request)
                self.document = self.document.merged(found)
                if not found:
                    self.unanswered.append(request)
                self.left -= 1
                self.advance(done)
                if monotonic() - saved_at > _SAVE_SECONDS:
                    self.save(self.document)
                    saved_at = monotonic()
        finally:
            self.save(self.document)
        return self.document

    def _measure(self, request: MeasurementRequest) -> list[Measurement]:
        if request.op == DISK_READ:
            return measure_disk(request)
        answers = self.manager.hook.xlm_measure(machine=self.machine, request=request)
        # What no machine takes would make the whole profile useless.
        return [each for answer in answers for each in answer if is_plausible(each.seconds)]
