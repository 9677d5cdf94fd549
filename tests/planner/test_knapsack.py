"""The multiple-choice knapsack against all choices there are."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from xlm_hooks.planner.knapsack import frontier

OPTIONS = st.lists(st.tuples(st.integers(0, 20), st.integers(-5, 20)), min_size=1, max_size=4)
CLASSES = st.lists(OPTIONS, min_size=1, max_size=5)


def classes_of(options: list[list[tuple[int, int]]]) -> list[tuple[np.ndarray, np.ndarray]]:
    return [
        (np.array([size for size, _ in each]), np.array([value for _, value in each], dtype=float))
        for each in options
    ]


@given(options=CLASSES, capacity=st.integers(0, 100))
def test_the_frontier_holds_the_best_choice_for_every_capacity(
    options: list[list[tuple[int, int]]], capacity: int
) -> None:
    found = frontier(classes_of(options))
    fitting = found.values[found.bytes <= capacity]
    all_choices = [
        sum(value for _, value in choice)
        for choice in product(*options)
        if sum(size for size, _ in choice) <= capacity
    ]
    assert fitting.max(initial=-np.inf) == max(all_choices, default=-np.inf)


@given(options=CLASSES)
def test_points_say_which_options_they_take(options: list[list[tuple[int, int]]]) -> None:
    found = frontier(classes_of(options))
    for size, value, taken in zip(found.bytes, found.values, found.options, strict=True):
        choice = [each[at] for each, at in zip(options, taken, strict=True)]
        assert (sum(s for s, _ in choice), sum(v for _, v in choice)) == (size, value)


def test_a_long_frontier_is_thinned_and_keeps_both_ends() -> None:
    many = np.arange(1000)
    found = frontier([(many, many.astype(float))], most_points=10)
    assert len(found.bytes) <= 11
    assert (found.bytes[0], found.bytes[-1]) == (0, 999)
