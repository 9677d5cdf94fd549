from __future__ import annotations

import math
import random

import pytest

from xlm_plugin.cli._paired import paired_ratio


def test_a_ratio_is_the_median_of_its_rounds() -> None:
    assert paired_ratio([1.0, 9.0, 1.1, 1.2, 0.1]).median == 1.1


def test_rounds_that_agree_leave_no_doubt() -> None:
    ratio = paired_ratio([1.0] * 4)
    assert (ratio.median, ratio.interval, ratio.rounds) == (1.0, 0.0, 4)


def test_too_few_rounds_are_never_sure() -> None:
    assert paired_ratio([1.0] * 3).interval == math.inf


def test_the_interval_holds_the_truth_nineteen_times_of_twenty() -> None:
    chance = random.Random(1)
    ratios = (paired_ratio([chance.gauss(1, 0.1) for _ in range(25)]) for _ in range(500))
    held = sum(abs(ratio.median - 1) <= ratio.interval for ratio in ratios)
    assert held / 500 == pytest.approx(0.95, abs=0.04)


def test_it_is_shown_with_its_doubt() -> None:
    assert str(paired_ratio([1.0, 1.0, 1.04, 1.04])) == "1.020 ± 0.031"
