"""Plans that the worker makes itself, as it loads: within the budget, and with vLLM's own answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.vllm.plans import plan_by
from xlm_plugin.errors import DoesNotFitError, PlanError, UsageError
from xlm_plugin.units import MIB, parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from integration.vllm.asking import Asker

CACHE_BYTES = 4 * MIB
OPTIONS = {"kv_cache_memory_bytes": CACHE_BYTES, "max_num_batched_tokens": 512}


@pytest.fixture(autouse=True)
def the_cache_is_ours_to_size(monkeypatch: pytest.MonkeyPatch) -> None:
    # A CPU build takes as many GiB as this says, whatever else it is told.
    monkeypatch.delenv("VLLM_CPU_KVCACHE_SPACE")


@pytest.mark.parametrize(("model", "vram"), [("llama", "11MiB"), ("mixtral", "16MiB"), ("qwen3moe", "19MiB")])
def test_a_budget_alone_is_enough(model: str, vram: str, tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny(model)

    asker.start_within(folder, vram, **OPTIONS)
    answers = asker.ask()
    counted, plan = asker.stats, asker.offloader.plan
    shards = len(asker.offloader.runtime.shards)

    assert answers == asker.stock(folder, **OPTIONS)
    assert plan.budget_bytes == counted["budget_bytes"] == parse_bytes(vram)
    assert plan.ledger.kv_bytes == CACHE_BYTES
    beside_bytes = plan.ledger.total_bytes - _placed_bytes(plan.ledger.model_dump())
    assert sum(counted["ledger_bytes"].values()) + beside_bytes <= plan.budget_bytes
    assert 0 < counted["resident_shards"] < shards


def _placed_bytes(ledger: dict[str, int]) -> int:
    return sum(ledger[f"{kind}_bytes"] for kind in ("resident_weight", "staging", "expert_cache"))


def test_vllm_takes_for_its_cache_what_the_plan_says(tiny: Callable[[str], Path], asker: Asker) -> None:
    # vLLM alone would take this share of the memory, which is more.
    asker.start_within(tiny("llama"), "16MiB", max_num_batched_tokens=512, gpu_memory_utilization=0.1)
    cache = asker.engine.llm_engine.vllm_config.cache_config

    assert cache.num_gpu_blocks * cache.block_size >= 512
    assert asker.offloader.plan.ledger.kv_bytes < 4 * MIB


def test_a_budget_below_what_vllm_takes_is_refused(tiny: Callable[[str], Path], asker: Asker) -> None:
    with pytest.raises(DoesNotFitError, match="before any weights are placed"):
        asker.start_within(tiny("llama"), "5MiB", **OPTIONS)


def test_a_plan_for_more_ranks_is_refused(tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny("llama")
    plan = plan_by(folder, {512: lambda shard: "stream"}, ranks=2)  # noqa: ARG005

    with pytest.raises(PlanError, match="tensor-parallel size of 1"):
        asker.start(folder, plan, **OPTIONS)


def test_a_plan_for_another_model_is_refused(tiny: Callable[[str], Path], asker: Asker) -> None:
    plan = plan_by(tiny("mixtral"), {512: lambda shard: "stream"})  # noqa: ARG005

    with pytest.raises(PlanError, match="another model"):
        asker.start(tiny("llama"), plan, **OPTIONS)


def test_a_second_offloader_is_refused(tiny: Callable[[str], Path], asker: Asker) -> None:
    with pytest.raises(UsageError, match="--cpu-offload-gb"):
        asker.start_within(tiny("llama"), "16MiB", cpu_offload_gb=1, **OPTIONS)
