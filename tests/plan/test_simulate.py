"""The step simulator on shards of a few round seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlm_plugin.machine.rates import Rates
from xlm_plugin.plan.simulate import CPU, PIN, STREAM, codes, simulate, simulate_step, timeline
from xlm_plugin.plan.step_costs import StepCosts
from xlm_plugin.testing import tiny_model

P, S, C = PIN, STREAM, CPU


def costs(
    *,
    device: Any = (1.0,) * 4,
    host: Any = (5.0,) * 4,
    copy: Any = (3.0,) * 4,
    crossing: float = 0.0,
    device_cache: Any = (0.0,) * 4,
    host_cache: Any = (0.0,) * 4,
    device_copy_share: float = 1.0,
    host_copy_share: float = 1.0,
) -> StepCosts:
    """Return costs of four shards in seconds; a copy of a second moves 100 bytes."""
    rates = Rates(100, 1, 1, 1, 1, 1, 1, crossing, 0.0, device_copy_share, host_copy_share)
    arrays = [np.array(each, dtype=float) for each in (device, host, device_cache, host_cache, copy)]
    return StepCosts(*arrays, copy_bytes=arrays[-1] * 100, rates=rates)


def step(placements: list[np.int8], slots: int = 2, cached_on_host: Any = None, **how: Any) -> Any:
    flags = None if cached_on_host is None else np.array(cached_on_host)
    return simulate_step(costs(**how), np.array(placements, dtype=np.int8), slots, flags)


def test_pinned_shards_take_the_devices_time() -> None:
    found = step([P, P, P, P])
    assert (found.step_seconds, found.device_seconds, found.link_bytes) == (4.0, 4.0, 0)
    assert found.bottleneck == "device"


def test_shards_on_the_cpu_take_the_hosts_time() -> None:
    found = step([P, C, C, P])
    assert (found.step_seconds, found.host_seconds) == (12.0, 10.0)
    assert found.bottleneck == "host"


def test_a_copy_runs_while_earlier_shards_compute() -> None:
    assert step([P, P, P, S]).step_seconds == 4.0
    assert step([P, P, S, P]).step_seconds == 5.0
    assert step([C, S, P, P]).step_seconds == 8.0


def test_copies_follow_each_other_on_the_link() -> None:
    found = step([S, S, P, P])
    assert found.step_seconds == 3 + 3 + 1 + 2
    assert found.link_bytes == 600
    assert found.utilisation["link"] == pytest.approx(6 / 9)
    assert found.bottleneck == "link"


def test_a_copy_waits_until_its_slot_is_free() -> None:
    slow = {"device": (9.0, 1.0, 1.0, 1.0)}
    # The third copy starts when the first shard is done at 12, or with a third slot at 6.
    assert step([S, S, S, P], **slow).step_seconds == 12 + 3 + 1 + 1
    assert step([S, S, S, P], slots=3, **slow).step_seconds == 3 + 9 + 1 + 1 + 1


def test_each_change_of_sides_is_a_crossing_and_a_step_begins_and_ends_on_the_host() -> None:
    free = {"device": (0.0,) * 4, "host": (0.0,) * 4, "crossing": 1.0}
    assert step([P, P, P, P], **free).crossing_seconds == 2
    assert step([C, C, C, C], **free).crossing_seconds == 0
    assert step([P, C, P, C], **free).crossing_seconds == 4
    assert step([C, C, P, P], **free).crossing_seconds == 2


def test_attention_runs_where_its_cache_lies() -> None:
    cached = {"device_cache": (2.0, 0, 0, 0), "host_cache": (7.0, 0, 0, 0), "crossing": 0.5}
    on_device, on_host = (
        step([P, P, P, P], cached_on_host=[flag, 0, 0, 0], **cached) for flag in (False, True)
    )
    assert on_device.step_seconds == 1 + 4 + 2
    assert on_host.step_seconds == 1 + 4 + 7 + 1
    together, apart = (step([C, C, C, C], cached_on_host=[flag, 0, 0, 0], **cached) for flag in (True, False))
    assert together.step_seconds == 20 + 7
    assert apart.step_seconds == 20 + 2 + 1


def test_what_computes_beside_a_copy_loses_speed() -> None:
    alone, beside = (step([P, P, P, S], device=(2.0,) * 4, device_copy_share=s) for s in (1.0, 0.5))
    # Three seconds of copying cost half of three seconds of computing.
    assert (alone.step_seconds, beside.step_seconds) == (8.0, 9.5)
    assert step([C, S, P, P], host_copy_share=0.5).step_seconds == 8 + 1.5


def test_what_is_left_of_a_step_is_waiting() -> None:
    assert step([P, P, P, P]).waiting_seconds == 0.0
    assert step([S, S, P, P]).waiting_seconds == 9 - 4
    assert step([P, P, P, S], device=(2.0,) * 4, device_copy_share=0.5).waiting_seconds == 1.5


def test_a_timeline_says_when_each_shard_is_copied_and_computed() -> None:
    placements = np.array([C, S, P, S], dtype=np.int8)
    first, second, third, fourth = timeline(costs(crossing=0.5), placements)
    assert (first.begin, first.end, first.host_seconds, first.copy_begin) == (0, 5, 5, first.copy_end)
    assert (second.copy_begin, second.copy_end, second.begin, second.end) == (0, 3, 5, 6.5)
    assert (second.crossing_seconds, second.device_seconds) == (0.5, 1)
    assert (third.begin, third.end) == (6.5, 7.5)
    assert (fourth.copy_begin, fourth.copy_end) == (3, 6)
    assert fourth.end == simulate_step(costs(crossing=0.5), placements).step_seconds


def test_a_batch_is_as_its_rows_are_alone() -> None:
    rows = np.array([[P, S, C, S], [S, S, S, S], [C, C, P, P]], dtype=np.int8)
    together = simulate(costs(crossing=0.25), rows)
    alone = [simulate_step(costs(crossing=0.25), row).step_seconds for row in rows]
    assert together.step_seconds.tolist() == alone


def test_placements_by_name_become_codes_in_order() -> None:
    shards = [shard for shard in tiny_model(layers=1).shards if shard.home == "device"]
    placed = {"blk.0.attn": "pin", "blk.0.ffn": "stream", "output": "cpu"}
    assert codes(shards, placed).tolist() == [P, S, C]  # type: ignore[arg-type]


SECONDS = st.lists(st.floats(0, 10), min_size=4, max_size=4)
PLACEMENTS = st.lists(st.sampled_from([P, S, C]), min_size=4, max_size=4)


@given(device=SECONDS, host=SECONDS, copy=SECONDS, placements=PLACEMENTS, slots=st.integers(2, 4))
def test_no_step_is_shorter_than_any_resource_is_busy_or_longer_than_all_in_turn(
    device: list[float], host: list[float], copy: list[float], placements: list[np.int8], slots: int
) -> None:
    found = step(placements, slots, device=device, host=host, copy=copy)
    busy = (found.link_seconds, found.device_seconds + found.host_seconds)
    assert max(busy) <= found.step_seconds * (1 + 1e-9)
    assert found.step_seconds <= sum(busy) * (1 + 1e-9)


@given(device=SECONDS, host=SECONDS, copy=SECONDS, placements=PLACEMENTS, share=st.floats(0.3, 1))
def test_a_faster_link_or_one_more_slot_never_predicts_slower(
    device: list[float], host: list[float], copy: list[float], placements: list[np.int8], share: float
) -> None:
    how = {"device": device, "host": host}
    slow = step(placements, copy=copy, **how).step_seconds
    faster = step(placements, copy=[share * each for each in copy], **how).step_seconds
    roomier = step(placements, slots=3, copy=copy, **how).step_seconds
    assert max(faster, roomier) <= slow * (1 + 1e-9)
