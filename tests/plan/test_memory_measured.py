"""The ledger against the engine: weights, caches and compute buffers of 27 models in 10 contexts."""

from __future__ import annotations

import pytest

from tests.cases.measured import Measured, graph, measured
from xlm_plugin.plan.compute import device_compute, host_compute_bytes
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.memory import estimate

ROWS = [row for row in measured() if not row.on_cpu]
MIXED = [row for row in measured() if row.on_cpu]
MODELS = {row.model: row for row in ROWS if row.model != "SmolLM2-135M"}


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_compute_buffers_are_covered_and_little_is_wasted(row: Measured) -> None:
    model = graph(row.model)
    device = device_compute(model, row.context)
    # Copies of caches of other types than f16 depend on the device's kernels; here there are none.
    device_bytes = device.total_bytes - (device.kv_copy_bytes if row.context.flash_attention else 0)
    assert row.compute_bytes <= device_bytes <= 1.25 * row.compute_bytes
    host_bytes = host_compute_bytes(model, row.context)
    assert row.host_compute_bytes <= host_bytes <= 1.125 * row.host_compute_bytes


@pytest.mark.parametrize("row", MIXED, ids=str)
def test_compute_buffers_are_covered_where_shards_run_on_the_cpu(row: Measured) -> None:
    model = graph(row.model)
    assert device_compute(model, row.context, crossing=True).total_bytes >= row.compute_bytes
    assert host_compute_bytes(model, row.context, crossing=True) >= row.host_compute_bytes


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_caches_and_states_are_the_engines_to_the_byte(row: Measured) -> None:
    rule = graph(row.model).cache
    found = rule.kv_bytes(row.context) + rule.state_bytes(row.context.sequences)
    # A CUDA-like device fills up the last row of a quantised tensor: a few hundred bytes for each.
    padding_bytes = 0 if row.context.kv_type_k == "f16" else 2 * 544 * len(rule.layers)
    assert row.context_bytes - padding_bytes <= found <= row.context_bytes


@pytest.mark.parametrize("row", MODELS.values(), ids=lambda row: row.model)
def test_weights_are_the_engines(row: Measured) -> None:
    memory = estimate(graph(row.model), PlannedContext(tokens=4096))
    found = memory.small_weight_bytes + memory.movable_bytes
    assert row.device_weight_bytes <= found <= 1.0001 * row.device_weight_bytes
    assert memory.host_weight_bytes == row.host_weight_bytes
