"""A multiple-choice knapsack, solved for every capacity at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]
    Floats = NDArray[np.float64]

# Above this many points the frontier is thinned, to the best one in each of as many bins of bytes.
MOST_POINTS = 4096


@dataclass(frozen=True)
class Frontier:
    """The best choices for every capacity, bytes and values rising.

    ``options`` (points x classes) says which option of each class a point takes.
    """

    bytes: Integers
    values: Floats
    options: Integers


def frontier(classes: Sequence[tuple[Integers, Floats]], most_points: int = MOST_POINTS) -> Frontier:
    """Return the frontier of taking one option, of given bytes and value, from each class.

    Exact up to ``most_points`` points: a point is left out only where another one takes no more bytes
    and has no less value.
    """
    size_bytes, values = np.zeros(1, dtype=np.int64), np.zeros(1)
    options = np.zeros((1, 0), dtype=np.int64)
    for option_bytes, option_values in classes:
        at, option = np.divmod(np.arange(len(size_bytes) * len(option_bytes)), len(option_bytes))
        size_bytes = size_bytes[at] + option_bytes[option]
        values = values[at] + option_values[option]
        keep = _undominated(size_bytes, values)
        if len(keep) > most_points:
            keep = _thinned(keep, size_bytes, most_points)
        size_bytes, values = size_bytes[keep], values[keep]
        options = np.column_stack([options[at[keep]], option[keep]])
    return Frontier(size_bytes, values, options)


def _undominated(size_bytes: Integers, values: Floats) -> Integers:
    order = np.lexsort((-values, size_bytes))
    best_before = np.concatenate([[-np.inf], np.maximum.accumulate(values[order])[:-1]])
    kept: Integers = order[values[order] > best_before]
    return kept


def _thinned(points: Integers, size_bytes: Integers, most_points: int) -> Integers:
    """Return the first of the ``points``, and the last, which is the best, in each bin."""
    sizes = size_bytes[points]
    bins = (sizes - sizes[0]) * (most_points - 1) // max(1, int(sizes[-1] - sizes[0]))
    last = np.append(np.flatnonzero(np.diff(bins)), len(points) - 1)
    kept: Integers = points[np.union1d(0, last)]
    return kept
