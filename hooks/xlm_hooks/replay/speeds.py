"""The published speeds, predicted."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.replay.placement import pipelined, placeable, whole_layers
from xlm_hooks.replay.published import (
    BUDGETS_GIB,
    MODELS,
    PIPELINED_FIRST_TOKEN_SECONDS,
    PIPELINED_TOKENS_PER_S,
    WHOLE_LAYER_BUDGETS_GIB,
    WHOLE_LAYERS,
)
from xlm_plugin.plan.simulate import CPU, STREAM, simulate_step
from xlm_plugin.plan.step_costs import CostModel, StepLoad
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from xlm_hooks.replay.placement import Placed
    from xlm_plugin.machine.rates import Rates
    from xlm_plugin.model.graph import ModelGraph

# The published ladder of whole layers was climbed in both 1024 and 2048.
_UBATCH_TOKENS = 2048
# Published speeds that differ by less are one speed, measured twice.
_SAME = 0.01


@dataclass(frozen=True, slots=True)
class Cell:
    """One published number and the one predicted for it."""

    model: str
    context_tokens: int
    budget_gib: int
    published: float
    predicted: float

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return abs(self.predicted / self.published - 1)


def decode_cells(rates: Rates) -> list[Cell]:
    """Return tokens/s in decode with pipelined sharding."""
    return _cells(rates, PIPELINED_TOKENS_PER_S, BUDGETS_GIB, pipelined, _decode_tokens_per_s)


def whole_layer_cells(rates: Rates) -> list[Cell]:
    """Return tokens/s in decode of the stock engine."""
    return _cells(rates, WHOLE_LAYERS, WHOLE_LAYER_BUDGETS_GIB, whole_layers, _decode_tokens_per_s)


def first_token_cells(rates: Rates) -> list[Cell]:
    """Return seconds to the first token with pipelined sharding: whatever is not resident streams."""
    return _cells(rates, PIPELINED_FIRST_TOKEN_SECONDS, BUDGETS_GIB, pipelined, _prefill_seconds)


def _cells(
    rates: Rates,
    table: Mapping[tuple[str, int], Sequence[float]],
    budgets_gib: Sequence[int],
    place: Callable[[ModelGraph, int, float], Placed],
    predict: Callable[[CostModel, int, Placed], float],
) -> list[Cell]:
    return [
        Cell(name, tokens, gib, published, predict(costs, tokens, place(costs.model, tokens, gib * GIB)))
        for (name, tokens), row in table.items()
        for costs in [_cost_model(name, rates)]
        for gib, published in zip(budgets_gib, row, strict=True)
    ]


def median_error(cells: Iterable[Cell]) -> float:
    """Return the median relative error."""
    return median(cell.error for cell in cells)


def kendall_tau(cells: Sequence[Cell]) -> float:
    """Return Kendall's rank correlation over budgets, of pairs at one context that differ as published."""
    agreements = list(_agreements(cells))
    return sum(agreements) / len(agreements)


def _agreements(cells: Sequence[Cell]) -> Iterator[int]:
    for one, other in combinations(cells, 2):
        if one.context_tokens != other.context_tokens or one.model != other.model:
            continue
        if abs(one.published / other.published - 1) > _SAME:
            yield 1 if (one.published - other.published) * (one.predicted - other.predicted) > 0 else -1


def _cost_model(name: str, rates: Rates) -> CostModel:
    model = MODELS[name]()
    return CostModel(model, placeable(model), rates)


def _decode_tokens_per_s(costs: CostModel, context_tokens: int, placed: Placed) -> float:
    step = simulate_step(
        costs.costs(StepLoad(1, context_tokens)), placed.placements, host_cache=placed.host_cache
    )
    return 1 / step.step_seconds


def _prefill_seconds(costs: CostModel, context_tokens: int, placed: Placed) -> float:
    streaming = np.where(placed.placements == CPU, STREAM, placed.placements)
    ubatch_tokens = min(_UBATCH_TOKENS, context_tokens)
    loads = (StepLoad(ubatch_tokens, done) for done in range(0, context_tokens, ubatch_tokens))
    return sum(simulate_step(costs.costs(load), streaming).step_seconds for load in loads)
