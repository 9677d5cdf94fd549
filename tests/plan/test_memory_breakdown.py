"""The ledger in llama.cpp's layout."""

from __future__ import annotations

from xlm_plugin.plan.breakdown import (
    BreakdownRow,
    device_row,
    format_breakdown,
    host_row,
    ledger_lines,
)
from xlm_plugin.plan.document import Ledger, PlannedContext
from xlm_plugin.plan.memory import estimate
from xlm_plugin.testing import fake_device, tiny_model
from xlm_plugin.units import GIB, MIB

LEDGER = Ledger(
    resident_weight_bytes=1000 * MIB,
    small_weight_bytes=10 * MIB,
    staging_bytes=200 * MIB,
    kv_bytes=300 * MIB,
    state_bytes=20 * MIB,
    compute_bytes=90 * MIB,
    projector_bytes=40 * MIB,
    driver_bytes=384 * MIB,
)
DEVICE = fake_device(memory_bytes=8 * GIB, free_bytes=7 * GIB)


def test_e10_a_published_breakdown_is_reproduced() -> None:
    # llama.cpp tools/fit-params/README: Qwen3-30B-A3B in F16, -c 4096 -ngl 48, experts of 14-47 on the CPU.
    half = MIB // 2
    cuda = BreakdownRow(
        name="CUDA0 (RTX 4090)",
        model_bytes=17904 * MIB + half,
        context_bytes=384 * MIB,
        compute_bytes=898 * MIB + half,
        total_bytes=24077 * MIB,
        free_bytes=945 * MIB,
    )
    host = BreakdownRow("Host", 58259 * MIB, 0, 12 * MIB)
    assert format_breakdown([cuda, host]).splitlines() == [
        "| memory breakdown [MiB] | total   free     self   model   context   compute    unaccounted |",
        "|   - CUDA0 (RTX 4090)   | 24077 =  945 + (19187 = 17904 +     384 +     898) +        3945 |",
        "|   - Host               |                 58271 = 58259 +       0 +      12                |",
    ]


def test_the_columns_add_up_to_the_device() -> None:
    row = device_row(LEDGER, DEVICE)
    assert row.total_bytes == DEVICE.memory_bytes
    assert row.free_bytes == DEVICE.free_bytes - LEDGER.total_bytes
    assert (row.model_bytes, row.context_bytes, row.compute_bytes) == (1250 * MIB, 320 * MIB, 90 * MIB)
    assert row.free_bytes + row.self_bytes + (row.unaccounted_bytes or 0) == row.total_bytes


def test_what_is_unaccounted_is_the_drivers_and_others() -> None:
    assert device_row(LEDGER, DEVICE).unaccounted_bytes == LEDGER.driver_bytes + 1 * GIB


def test_c08_what_others_hold_has_a_line_of_its_own() -> None:
    text = format_breakdown([device_row(LEDGER, DEVICE)], ledger_lines(LEDGER, DEVICE))
    assert "|     other, held before: 1024" in text.splitlines()
    assert "|     staging: 200" in text.splitlines()


def test_lines_of_nothing_are_left_out() -> None:
    empty = LEDGER.model_copy(update={"staging_bytes": 0})
    assert "staging" not in format_breakdown([device_row(empty, DEVICE)], ledger_lines(empty, DEVICE))


def test_the_host_holds_its_tables_and_what_is_displaced() -> None:
    model = tiny_model()
    memory = estimate(model, PlannedContext(tokens=512))
    row = host_row(memory, displaced_bytes=MIB)
    assert row.model_bytes == model.host_weight_bytes + MIB
    assert row.compute_bytes == memory.host_compute_bytes
    assert row.unaccounted_bytes is None
