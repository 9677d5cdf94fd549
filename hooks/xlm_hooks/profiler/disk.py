"""Reading from the disk that models are kept on."""

from __future__ import annotations

import datetime
import os
import statistics
import tempfile
from time import perf_counter
from typing import TYPE_CHECKING

from xlm_plugin.cache import cache_root
from xlm_plugin.machine.profile import Measurement

if TYPE_CHECKING:
    from xlm_plugin.machine.profile import MeasurementRequest

_CHUNK_BYTES = 1 << 20
_ROUNDS = 3


def measure_disk(request: MeasurementRequest) -> list[Measurement]:
    """Return how long a file of ``request.shape`` bytes takes to be read, ``"cold"`` or ``"warm"``.

    Cold is after the system was told to drop its pages, which some file systems and virtual disks answer
    from a cache of their own. Returns nothing where that cannot be asked for, or the disk is full.
    """
    (size,) = request.shape
    cold = request.type == "cold"
    if cold and not hasattr(os, "posix_fadvise"):
        return []
    try:
        cache_root().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache_root(), prefix=".disk-") as file:
            block = os.urandom(_CHUNK_BYTES)
            for _ in range(size // _CHUNK_BYTES):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
            runs = [_read_seconds(file.name, cold=cold) for _ in range(_ROUNDS)]
    except OSError:
        return []
    spread = (max(runs) - min(runs)) / 2
    return [Measurement(request, statistics.median(runs), spread, "xlm", datetime.date.today())]


def _read_seconds(path: str, *, cold: bool) -> float:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if cold:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        start = perf_counter()
        while os.read(descriptor, _CHUNK_BYTES):
            pass
        return perf_counter() - start
    finally:
        os.close(descriptor)
