from __future__ import annotations

import json
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp.control import DeviceControl
from xlm_plugin.errors import EngineError
from xlm_plugin.plan.document import Plan
from xlm_plugin.testing import tiny_model, tiny_plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STATS = {
    "budget_bytes": 100,
    "ledger_bytes": {"weights": 60, "staging": 20},
    "device_bytes": 80,
    "link_bytes": 7,
    "link_seconds": 0.5,
    "steps": {"1": 31, "512": 1},
    "resident_shards": 3,
    "demoted_shards": 1,
    "prefetch_hits": 5,
    "prefetch_waits": 2,
    "wait_seconds": 0.1,
    "state": "running",
    "a later version's field": True,
}


class Device:
    """A control socket that gives prepared answers and keeps what it was asked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.answers: list[bytes] = []
        self.requests: list[dict[str, object]] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def answer(self, value: object) -> None:
        self.answers.append(json.dumps(value).encode() + b"\n")

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as lines:
                self.requests.append(json.loads(lines.readline()))
                # A large answer comes in pieces.
                answer = self.answers.pop(0)
                for piece in filter(None, (answer[:10], answer[10:])):
                    connection.sendall(piece)


@pytest.fixture
def device(tmp_path: Path) -> Iterator[Device]:
    device = Device(tmp_path / "s")
    yield device
    device.close()


def test_stats_are_read_by_tier(device: Device) -> None:
    device.answer({"xlm": 1, "ok": True, **STATS})
    stats = DeviceControl(device.path).stats()
    assert stats.steps == {1: 31, 512: 1}
    assert sum(stats.ledger_bytes.values()) == stats.device_bytes == 80
    assert device.requests == [{"xlm": 1, "command": "stats"}]


def test_a_new_budget_is_sent_and_what_the_device_then_counts_comes_back(device: Device) -> None:
    device.answer({"xlm": 1, "ok": True})
    device.answer({"xlm": 1, "ok": True, **STATS})
    assert DeviceControl(device.path).set_budget(100).budget_bytes == 100
    assert device.requests[0] == {"xlm": 1, "command": "set_budget", "budget_bytes": 100}


def test_a_plan_is_sent_whole(device: Device) -> None:
    device.answer({"xlm": 1, "ok": True})
    device.answer({"xlm": 1, "ok": True, **STATS})
    plan = tiny_plan(tiny_model())
    assert DeviceControl(device.path).load_plan(plan).budget_bytes == 100
    assert device.requests[0]["command"] == "load_plan"
    assert Plan.from_json(json.dumps(device.requests[0]["plan"])) == plan


@pytest.mark.parametrize("command", ["pause", "resume", "park", "wake"])
def test_a_change_of_state_is_one_command(device: Device, command: str) -> None:
    device.answer({"xlm": 1, "ok": True})
    getattr(DeviceControl(device.path), command)()
    assert device.requests == [{"xlm": 1, "command": command}]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            b'{"xlm": 1, "ok": false, "error": "the budget is below the staging ring"}\n',
            "below the staging ring",
        ),
        (b'{"xlm": 1, "ok": false}\n', "no reason given"),
        (b'{"xlm": 2, "ok": true}\n', "speaks control protocol 2, this xlm speaks 1"),
        (b'{"ok": true, "xlm"', "ended while it answered"),
        (b"", "ended while it answered"),
        (b"not JSON\n", "not JSON"),
        (b"[1]\n", "not JSON"),
        (b'{"xlm": 1, "ok": true}\n', "stats cannot be read"),
    ],
)
def test_a_bad_answer_is_one_sentence(device: Device, answer: bytes, message: str) -> None:
    device.answers.append(answer)
    with pytest.raises(EngineError, match=message):
        DeviceControl(device.path).stats()


def test_an_engine_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be reached"):
        DeviceControl(tmp_path / "nothing").stats()


def test_an_engine_that_does_not_answer_in_time_is_told(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        with pytest.raises(EngineError, match=r"did not answer 'stats' within 0\.01 seconds"):
            DeviceControl(path, timeout_seconds=0.01).stats()
