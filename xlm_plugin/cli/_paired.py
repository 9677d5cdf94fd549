"""Ratios of two things that are measured in turns, and how sure they are."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Fewer have no quartiles to speak of.
_FEWEST = 4


@dataclass(frozen=True, slots=True)
class PairedRatio:
    """The median of ``rounds`` ratios; the true one lies within ``median`` +- ``interval`` with 95 %."""

    median: float
    interval: float
    rounds: int

    def __str__(self) -> str:
        """Return ``1.020 +- 0.030``."""
        return f"{self.median:.3f} ± {self.interval:.3f}"


def paired_ratio(ratios: Sequence[float]) -> PairedRatio:
    """Return the median of ``ratios``, one of each round.

    Its interval is 1.57 interquartile ranges over the root of their number: the notch of a box plot
    (McGill, Tukey and Larsen, Variations of Box Plots, 1978). Infinite for fewer than four.
    """
    median = statistics.median(ratios)
    if len(ratios) < _FEWEST:
        return PairedRatio(median, math.inf, len(ratios))
    low, _, high = statistics.quantiles(ratios, n=4)
    return PairedRatio(median, 1.57 * (high - low) / math.sqrt(len(ratios)), len(ratios))
