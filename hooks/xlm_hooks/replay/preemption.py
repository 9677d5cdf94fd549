"""The published preemptions of arXiv 2605.19593: unload a model, run another, load it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_hooks.preemption.cost import LoadLaw

if TYPE_CHECKING:
    from collections.abc import Mapping

GB = 1e9

# Seconds of one preemption by gigabytes of weights in FP16 (3B, 8B, 14B).
PREEMPTIONS: Mapping[str, Mapping[float, float]] = {
    "p2-rtx5000ada": {5.9: 2.98, 15.6: 5.16, 28.3: 7.31},
    "p2-rtxa6000": {5.9: 2.62, 15.6: 4.06, 28.3: 5.73},
}

# One law a machine, the same for all of its models: the line that is nowhere far off.
LAWS: Mapping[str, LoadLaw] = {
    "p2-rtx5000ada": LoadLaw(fixed_seconds=1.99, bytes_per_s=5.17 * GB),
    "p2-rtxa6000": LoadLaw(fixed_seconds=1.84, bytes_per_s=7.22 * GB),
}


def largest_error_seconds() -> float:
    """Return how far the laws are off at most."""
    return max(
        abs(LAWS[machine].seconds(gigabytes * GB) - seconds)
        for machine, measured in PREEMPTIONS.items()
        for gigabytes, seconds in measured.items()
    )
