"""The live control of a device: JSON lines over its Unix socket."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

from xlm_plugin.backend import DeviceStats
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.plan.document import Plan

PROTOCOL = 1
_ANSWER_LIMIT_BYTES = 1 << 20


class DeviceControl:
    """Speaks to one device. A change takes effect at the device's next graph.

    Every call raises EngineError when the engine is gone, is silent for ``timeout_seconds``, refuses,
    or speaks another version of the protocol.
    """

    def __init__(self, socket_path: Path, *, timeout_seconds: float = 30) -> None:
        self._path = socket_path
        self._timeout_seconds = timeout_seconds

    def stats(self) -> DeviceStats:
        """Return what the device counts."""
        return _stats(self._ask("stats"))

    def set_budget(self, budget_bytes: int) -> DeviceStats:
        """Let the device take at most ``budget_bytes``, and return what it then counts."""
        self._ask("set_budget", budget_bytes=budget_bytes)
        return self.stats()

    def load_plan(self, plan: Plan) -> DeviceStats:
        """Let the device go on by ``plan`` from its next graph, within its budget, and return what it counts.

        The plan must be of the same model and keep the same caches in host memory; what was loaded for the
        CPU alone stays there.
        """
        self._ask("load_plan", plan=json.loads(plan.to_json()))
        return self.stats()

    def pause(self) -> None:
        """Hold the engine before its next graph."""
        self._ask("pause")

    def resume(self) -> None:
        """Let a paused engine go on."""
        self._ask("resume")

    def park(self) -> None:
        """Take resident weights out of VRAM and hold the engine."""
        self._ask("park")

    def wake(self) -> None:
        """Bring a parked engine's weights back and let it go on."""
        self._ask("wake")

    def _ask(self, command: str, **arguments: object) -> dict[str, Any]:
        request = json.dumps({"xlm": PROTOCOL, "command": command, **arguments}) + "\n"
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
                connection.settimeout(self._timeout_seconds)
                connection.connect(str(self._path))
                connection.sendall(request.encode())
                line = _read_line(connection)
        except TimeoutError:
            raise EngineError(
                f"The engine did not answer '{command}' within {self._timeout_seconds:g} seconds.",
                "It may be inside a long step; try again.",
            ) from None
        except OSError as error:
            raise EngineError(
                f"The engine cannot be reached: {error.strerror or error}.", "See what runs with 'xlm ps'."
            ) from None
        return _accept(command, line)


def _read_line(connection: socket.socket) -> bytes:
    received = bytearray()
    while not received.endswith(b"\n") and len(received) <= _ANSWER_LIMIT_BYTES:
        chunk = connection.recv(65536)
        if not chunk:
            break
        received += chunk
    return bytes(received)


def _accept(command: str, line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise EngineError(f"The engine ended while it answered '{command}'.", "See what runs with 'xlm ps'.")
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise EngineError(f"The engine's answer to '{command}' is not JSON.", "Is it an engine of xlm?")
    if answer.get("xlm") != PROTOCOL:
        raise EngineError(
            f"The engine speaks control protocol {answer.get('xlm')}, this xlm speaks {PROTOCOL}.",
            "Restart the engine with this version of xlm.",
        )
    if answer.get("ok") is not True:
        raise EngineError(f"The engine refused '{command}': {answer.get('error') or 'no reason given'}.")
    return answer


def _stats(answer: dict[str, Any]) -> DeviceStats:
    try:
        return DeviceStats(
            budget_bytes=answer["budget_bytes"],
            ledger_bytes=dict(answer["ledger_bytes"]),
            device_bytes=answer["device_bytes"],
            link_bytes=answer["link_bytes"],
            link_seconds=answer["link_seconds"],
            steps={int(new_tokens): count for new_tokens, count in answer["steps"].items()},
            resident_shards=answer["resident_shards"],
            demoted_shards=answer["demoted_shards"],
            prefetch_hits=answer["prefetch_hits"],
            prefetch_waits=answer["prefetch_waits"],
            wait_seconds=answer["wait_seconds"],
            state=answer["state"],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EngineError(f"The engine's stats cannot be read: {error!r}.") from None
