"""Plans within what vLLM leaves of a budget, by the built-in planner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.model.folder import LLAMA, decoder, write_folder
from xlm_plugin.errors import DoesNotFitError
from xlm_plugin.machine.profile import Profile
from xlm_plugin.model import read_model
from xlm_plugin.plugins import get_plugin_manager
from xlm_plugin.testing import fake_device, fake_machine
from xlm_plugin.units import MIB
from xlm_vllm.engine_memory import WorkerMemory
from xlm_vllm.making import make_worker_plan, planned_context
from xlm_vllm.paging import Paging
from xlm_vllm.ranks import Share, rank_graph

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan

DEVICE = fake_device()
MEMORY = WorkerMemory(Paging(context_tokens=256, step_tokens=128), sequences=4)


@pytest.fixture
def model(tmp_path: Path) -> ModelGraph:
    write_folder(tmp_path, LLAMA, decoder())
    return rank_graph(read_model(tmp_path), Share())


def fixed_bytes(model: ModelGraph) -> int:
    return MEMORY.ledger(model, planned_context(MEMORY), DEVICE).total_bytes


def planned(model: ModelGraph, budget_bytes: int, memory: WorkerMemory = MEMORY) -> Plan:
    profile = Profile(fake_machine(device=DEVICE))
    return make_worker_plan(get_plugin_manager(), model, profile, DEVICE, memory, budget_bytes)


def test_everything_is_resident_where_there_is_room(model: ModelGraph) -> None:
    plan = planned(model, fixed_bytes(model) + 100 * MIB)

    assert plan.resident == {shard.name for shard in plan.shards}


def test_less_room_keeps_the_ledger_within_the_budget(model: ModelGraph) -> None:
    weights_bytes = sum(shard.movable_bytes for shard in model.shards)
    budget_bytes = fixed_bytes(model) + weights_bytes * 3 // 4

    plan = planned(model, budget_bytes)

    assert plan.streamed
    assert fixed_bytes(model) < plan.ledger.total_bytes <= budget_bytes == plan.budget_bytes


def test_the_device_computes_all_shards(model: ModelGraph) -> None:
    weights_bytes = sum(shard.movable_bytes for shard in model.shards)

    plan = planned(model, fixed_bytes(model) + weights_bytes * 3 // 4)

    assert {placement for tier in plan.tiers for placement in tier.placements.values()} <= {"pin", "stream"}


def test_the_ledger_has_the_cache_that_vllm_was_told_to_take(model: ModelGraph) -> None:
    memory = WorkerMemory(MEMORY.paging, sequences=4, kv_bytes=3 * MIB)

    assert planned(model, fixed_bytes(model) + 100 * MIB, memory).ledger.kv_bytes == 3 * MIB


def test_a_budget_below_what_vllm_itself_takes_is_refused_with_its_parts(model: ModelGraph) -> None:
    with pytest.raises(DoesNotFitError, match="before any weights are placed") as raised:
        planned(model, fixed_bytes(model) - 1)

    assert raised.value.missing_bytes == 1
    assert "--max-model-len" in raised.value.hint
