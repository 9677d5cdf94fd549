from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.profile.rows import THREADS, machine_rows, row
from xlm_plugin.machine.lookup import Lookup

LOOKUP = Lookup(machine_rows(), THREADS)


def test_a_measured_shape_and_number_of_tokens_is_answered_as_measured() -> None:
    assert LOOKUP.seconds("host", "MUL_MAT", "Q4_0", (1024, 1024), 64) == pytest.approx(1e-11 * 1024**2 * 64)


def test_between_measured_tokens_the_curve_is_straight_on_logarithmic_scales() -> None:
    assert LOOKUP.seconds("host", "MUL_MAT", "Q4_0", (1024, 1024), 8) == pytest.approx(1e-11 * 1024**2 * 8)


def test_between_measured_sizes_it_is_too() -> None:
    assert LOOKUP.seconds("host", "MUL_MAT", "Q4_0", (256, 256), 1) == pytest.approx(1e-11 * 256**2)


def test_beyond_what_was_measured_seconds_grow_with_the_work() -> None:
    assert LOOKUP.seconds("host", "MUL_MAT", "F16", (4096, 4096), 128) == pytest.approx(1e-11 * 4096**2 * 128)


def test_a_type_that_was_not_measured_is_not_answered_from_another() -> None:
    assert LOOKUP.seconds("host", "MUL_MAT", "IQ2_S", (1024, 1024), 1) is None


def test_rows_of_other_threads_are_not_used() -> None:
    lookup = Lookup([row("MUL_MAT", "F16", (64, 64), 1, 1.0, threads=1)], THREADS)
    assert lookup.seconds("host", "MUL_MAT", "F16", (64, 64), 1) is None


def test_no_op_takes_less_than_the_smallest() -> None:
    lookup = Lookup(
        [row("ADD", "F32", (64,), 1, 1e-5), row("MUL_MAT", "F16", (1024, 1024), 1, 2e-5)], THREADS
    )
    assert lookup.seconds("host", "MUL_MAT", "F16", (2, 2), 1) == 1e-5


def test_what_is_slower_beside_a_copy_keeps_a_share_of_its_speed() -> None:
    rows = [
        row("MUL_MAT", "F16", (64, 64), 1, 1e-3),
        row("MUL_MAT", "F16", (64, 64), 1, 2e-3, beside_copy=True),
    ]
    assert Lookup(rows, THREADS).kept_share("host") == pytest.approx(0.5)
    assert Lookup(rows, THREADS).kept_share("device") is None


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 8192), st.integers(1, 4096))
def test_more_work_never_takes_less_time(width: int, rows: int, more: int, tokens: int) -> None:
    def seconds(shape: tuple[int, int], new_tokens: int) -> float:
        found = LOOKUP.seconds("device", "MUL_MAT", "Q4_0", shape, new_tokens)
        assert found is not None
        return found * (1 + 1e-9)

    assert seconds((width, rows + more), tokens) >= seconds((width, rows), tokens) / (1 + 1e-9)
    assert seconds((width, rows), tokens + more) >= seconds((width, rows), tokens) / (1 + 1e-9)
