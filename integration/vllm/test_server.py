"""``xlm vllm serve``: a stock `vllm serve` under a plan that was made as it loaded, controlled over HTTP."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from integration.vllm.models import write_model
from integration.vllm.server import served
from xlm_plugin.plan.document import Plan
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.vllm.server import VllmServer

PROMPT = "The river rose in the night"
LONG_TOKENS = 400
BUDGET_BYTES = 14 * MIB


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VllmServer]:
    directory = tmp_path_factory.mktemp("server")
    # In bfloat16 a request that is computed anew says other things, with and without us.
    folder = write_model("llama", directory / "llama", dtype="float32")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--vram", "14MiB", "--ctx", "512", "--parallel", "2")
    with served(folder, port, directory / "log", *options) as found:
        yield found


@pytest.fixture(scope="module")
def undisturbed(server: VllmServer) -> list[str]:
    return server.tokens(PROMPT, LONG_TOKENS)


def test_the_plan_that_was_made_at_load_keeps_to_the_budget_and_streams(server: VllmServer) -> None:
    (document,) = server.get("/xlm/plan")["workers"]
    plan = Plan.model_validate(document)

    assert plan.budget_bytes == BUDGET_BYTES
    assert plan.ledger.total_bytes <= BUDGET_BYTES
    assert plan.streamed


def test_stats_count_what_moves(server: VllmServer) -> None:
    (before,) = server.get("/xlm/stats")["workers"]
    server.tokens(PROMPT, 8)
    (after,) = server.get("/xlm/stats")["workers"]

    assert after["emulated"]
    assert sum(after["steps"].values()) >= sum(before["steps"].values()) + 8
    assert after["link_bytes"] > before["link_bytes"]


def test_a_stream_goes_on_where_it_was_parked(server: VllmServer, undisturbed: list[str]) -> None:
    stream = server.stream(PROMPT, LONG_TOKENS)
    tokens = [next(stream) for _ in range(20)]
    (parked,) = server.post("/xlm/park")["workers"]
    paused = server.get("/xlm/stats")
    (woken,) = server.post("/xlm/wake")["workers"]
    tokens.extend(stream)

    assert (parked["state"], sum(parked["ledger_bytes"].values())) == ("parked", 0)
    assert paused["paused"]
    assert paused["workers"][0]["steps"] == parked["steps"]
    assert sum(parked["steps"].values()) < sum(server.get("/xlm/stats")["workers"][0]["steps"].values())
    assert woken["state"] == "running"
    assert tokens == undisturbed


def test_a_stream_goes_on_under_another_budget(server: VllmServer, undisturbed: list[str]) -> None:
    stream = server.stream(PROMPT, LONG_TOKENS)
    tokens = [next(stream) for _ in range(20)]
    (small,) = server.post("/xlm/budget", {"vram": BUDGET_BYTES - 2 * MIB})["workers"]
    tokens.extend(next(stream) for _ in range(20))
    (large,) = server.post("/xlm/budget", {"vram": "14MiB"})["workers"]
    tokens.extend(stream)

    assert sum(small["ledger_bytes"].values()) < sum(large["ledger_bytes"].values())
    assert tokens == undisturbed


def test_pausing_keeps_the_cache(server: VllmServer, undisturbed: list[str]) -> None:
    stream = server.stream(PROMPT, LONG_TOKENS)
    tokens = [next(stream) for _ in range(20)]
    assert server.post("/xlm/pause")["paused"]
    assert not server.post("/xlm/resume")["paused"]
    tokens.extend(stream)

    assert tokens == undisturbed
    assert _preemptions(server) == 0


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"no json", 400, "The body is not JSON."),
        (b"[]", 400, "The body names no budget."),
        (b'{"vram": true}', 400, "The body names no budget."),
        (b'{"vram": "8"}', 400, "The size '8' has no unit."),
        (b'{"vram": "1KiB"}', 409, "A budget of 1.00 KiB is too small"),
    ],
)
def test_a_budget_that_cannot_be_is_refused_and_changes_nothing(
    server: VllmServer, body: bytes, status: int, sentence: str
) -> None:
    (before,) = server.get("/xlm/stats")["workers"]

    response = server.client.post("/xlm/budget", content=body)

    assert response.status_code == status
    assert response.json()["error"].startswith(sentence)
    assert server.get("/xlm/stats")["workers"] == [before]


def _preemptions(server: VllmServer) -> float:
    lines = server.client.get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith("vllm:num_preemptions_total{"))
