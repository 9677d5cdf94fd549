"""Two workers, each with its share of every shard and a plan for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.vllm.plans import PREFILL, by_kind, plan_by

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from integration.vllm.asking import Asker

RANKS = 2
OPTIONS = {"tensor_parallel_size": RANKS, "distributed_executor_backend": "mp"}


@pytest.fixture(autouse=True)
def a_core_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", "0|1")


def test_two_workers_stream_their_shares_and_say_the_same(tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny("llama")
    plan = plan_by(folder, {PREFILL: by_kind("stream", attn="pin")}, ranks=RANKS)

    answers = asker.under(folder, plan, **OPTIONS)
    workers = asker.call("xlm_stats")

    assert answers == asker.stock(folder, **OPTIONS)
    assert len(workers) == RANKS
    for counted in workers:
        assert counted["link_bytes"] > 0
        assert sum(counted["ledger_bytes"].values()) <= plan.budget_bytes
