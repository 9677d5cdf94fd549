"""Measuring ops with the engine's own kernels, by the program that is built beside our device."""

from __future__ import annotations

import atexit
import datetime
import json
import os
import subprocess
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from xlm_llamacpp.engine.store import MEASURE as PROGRAM
from xlm_plugin.errors import EngineError
from xlm_plugin.machine.profile import DISK_READ, Measurement
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from xlm_llamacpp.engine import InstalledEngine
    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.profile import MeasurementRequest

# So fast that what is measured is the copying itself, which every set speed shares.
_EMULATED_LINK_BYTES_PER_S = 10**12
# Of measuring one request, where its spread stays wide.
_LIMIT_SECONDS = 0.15


class MeasuringProcess:
    """The program, waiting for requests. Raises EngineError where it cannot be started."""

    def __init__(self, engine: InstalledEngine, device: str | None, *, emulated: bool) -> None:
        program = engine.library.with_name(PROGRAM)
        if not program.is_file():
            raise EngineError(f"The engine has no {PROGRAM}.", "Build it again with 'xlm engine build'.")
        environment = {**os.environ, "GGML_BACKEND_PATH": str(engine.library)}
        if emulated:
            environment["XLM_EMULATED"] = (
                f"memory_bytes={4 * GIB},link_bytes_per_s={_EMULATED_LINK_BYTES_PER_S},"
                "link_latency_s=0.000001"
            )
            # As the engine runs there: threads that wait must not spin.
            environment["OMP_WAIT_POLICY"] = "passive"
        self._source = f"llama.cpp {engine.version}"
        self._process = subprocess.Popen(
            [str(program), str(engine.server.parent), *([device] if device else [])],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            # Ctrl-C ends the profile in order, between two requests.
            start_new_session=True,
        )
        atexit.register(self.close)
        if (problem := self._answer().get("error")) is not None:
            self.close()
            raise EngineError(f"Nothing can be measured: {problem}.", "See 'xlm doctor'.")

    def measure(self, request: MeasurementRequest, limit_seconds: float) -> Measurement | None:
        """Return the measurement, or None for what the device or the engine lacks.

        Raises EngineError where the program ends.
        """
        answer = self._ask(
            {
                "op": request.op,
                "type": request.type,
                "shape": request.shape,
                "new_tokens": request.new_tokens,
                "threads": max(1, request.threads),
                "on": request.on,
                "beside_copy": request.beside_copy,
                "limit_s": limit_seconds,
            }
        )
        if "error" in answer:
            return None
        return Measurement(
            request,
            float(answer["seconds"]),
            float(answer["spread_seconds"]),
            self._source,
            datetime.date.today(),
        )

    def close(self) -> None:
        """End the program."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream:
                stream.close()

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise EngineError(f"{PROGRAM} ended while it measured.", "Try again with XLM_DEBUG=1.") from None
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        try:
            answer: dict[str, Any] = json.loads(line)
        except ValueError:
            exit_code = self._process.wait()
            self.close()
            raise EngineError(
                f"{PROGRAM} ended while it measured (exit code {exit_code}).",
                "Build the engine again with 'xlm engine build'.",
            ) from None
        return answer


def measure(machine: Machine, request: MeasurementRequest) -> list[Measurement]:
    """Return the measurement of ``request``, or nothing where it cannot be measured.

    Raises EngineError where the program cannot be started, or ends.
    """
    if request.op == DISK_READ:
        return []
    device = machine.device
    process = _process(device.name if device else None, emulated=device is not None and device.emulated)
    try:
        found = process.measure(request, _LIMIT_SECONDS)
    except EngineError:
        # A kernel that crashed the program is one row less: the next request starts it again.
        process.close()
        _process.cache_clear()
        raise
    return [found] if found else []


@lru_cache(maxsize=1)
def _process(device: str | None, *, emulated: bool) -> MeasuringProcess:
    from xlm_llamacpp.engine import ensure_engine

    return MeasuringProcess(ensure_engine(), device, emulated=emulated)
