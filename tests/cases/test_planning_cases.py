"""Public reports on planning."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_hooks.planner.best import Planner
from xlm_hooks.planner.fixed import fixed_ledger
from xlm_hooks.planner.strategies import BUILT_IN, Static
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.breakdown import host_row
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.memory import estimate
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.testing import fake_device, fake_machine, tiny_model

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan

CONTEXT = PlannedContext(tokens=512)
# 62 layers and a large tied head, as in the report.
GEMMA_LIKE = tiny_model(
    layers=62, embedding_width=512, ffn_width=2048, vocabulary=32768, context_tokens=4096, tied=True
)


def plan(model: ModelGraph, weights_bytes: int, *strategies: object) -> Plan:
    machine = fake_machine(fake_device())
    fixed_bytes = fixed_ledger(model, CONTEXT, machine.device or fake_device()).total_bytes
    planner = Planner(model, Profile(machine), CONTEXT, "e2e", strategies or BUILT_IN)  # type: ignore[arg-type]
    return planner.plan(fixed_bytes + weights_bytes)


def sizes(model: ModelGraph) -> list[int]:
    return [device_bytes(shard) for shard in model.shards if shard.home == "device"]


def test_c31_an_odd_number_of_layers_and_a_large_head_fit_to_the_last_byte() -> None:
    assert plan(GEMMA_LIKE, sum(sizes(GEMMA_LIKE))).is_stock


def test_c31_a_byte_less_displaces_one_shard_and_not_a_layer() -> None:
    made = plan(GEMMA_LIKE, sum(sizes(GEMMA_LIKE)) - 1, Static())
    assert len(made.shards) - len(made.resident) == 1


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_c31_no_shard_stays_out_of_vram_that_fits_what_is_left_of_a_small_model(share: float) -> None:
    model = tiny_model(layers=4, embedding_width=512, ffn_width=2048, vocabulary=4096, context_tokens=4096)
    made = plan(model, int(sum(sizes(model)) * share), Static())
    left_bytes = made.budget_bytes - made.ledger.total_bytes
    assert all(shard.bytes > left_bytes for shard in made.shards if shard.name not in made.resident)


def test_c32_weights_that_are_displaced_from_the_device_are_in_host_memory_once() -> None:
    memory = estimate(GEMMA_LIKE, CONTEXT, device=fake_device())
    displaced = sum(sizes(GEMMA_LIKE)) // 2
    row = host_row(memory, displaced)
    assert row.model_bytes == memory.host_weight_bytes + displaced
