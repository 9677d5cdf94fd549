from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.profile.rows import machine_rows
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.measured_costs import unmeasured_types
from xlm_plugin.plan.step_costs import StepLoad, cost_model
from xlm_plugin.testing import fake_device, fake_machine, tiny_model

MODEL = tiny_model()
SHARDS = tuple(shard for shard in MODEL.shards if shard.home == "device" and shard.movable_bytes)
KINDS = tuple({tensor.type for shard in MODEL.shards for tensor in shard.tensors if tensor.movable})
MEASURED = Profile(fake_machine(), machine_rows(KINDS))


def test_measured_rows_win_over_described_rates() -> None:
    slow = tuple(replace(each, seconds=each.seconds * 100) for each in MEASURED.measurements)
    quick = cost_model(MODEL, SHARDS, MEASURED).costs(StepLoad(1))
    slower = cost_model(MODEL, SHARDS, replace(MEASURED, measurements=slow)).costs(StepLoad(1))
    assert (slower.device > 10 * quick.device).all()
    assert (slower.host > 10 * quick.host).all()
    assert slower.rates.crossing_seconds == pytest.approx(100 * quick.rates.crossing_seconds)


def test_the_device_is_as_much_quicker_as_it_was_measured() -> None:
    costs = cost_model(MODEL, SHARDS, MEASURED).costs(StepLoad(1))
    assert (costs.host > 5 * costs.device).all()


def test_types_that_were_not_measured_fall_back_to_described_rates_and_are_named() -> None:
    others = replace(MEASURED, measurements=machine_rows(("IQ1_S",)))
    described = cost_model(MODEL, SHARDS, Profile(MEASURED.machine)).costs(StepLoad(1))
    assert set(unmeasured_types(MODEL, others)) == set(KINDS)
    found = cost_model(MODEL, SHARDS, others).costs(StepLoad(1))
    assert np.isfinite(found.device).all()
    assert (found.device <= described.device * (1 + 1e-9)).all()
    assert unmeasured_types(MODEL, MEASURED) == ()


def test_an_emulated_device_computes_as_fast_as_the_host() -> None:
    emulated = replace(MEASURED, machine=fake_machine(fake_device(emulated=True)))
    costs = cost_model(MODEL, SHARDS, emulated).costs(StepLoad(1))
    assert (costs.device == costs.host).all()


def test_an_emulated_link_is_as_slow_as_it_is_set() -> None:
    slow = replace(MEASURED, machine=fake_machine(fake_device(emulated=True, link_bytes_per_s=1e6)))
    costs = cost_model(MODEL, SHARDS, slow).costs(StepLoad(1))
    assert costs.copy == pytest.approx(costs.copy_bytes / 1e6)


def test_a_measured_link_counts_as_measured() -> None:
    costs = cost_model(MODEL, SHARDS, MEASURED).costs(StepLoad(1))
    assert costs.copy == pytest.approx(costs.copy_bytes / (1 << 24) * 1e-3, rel=1e-6)
