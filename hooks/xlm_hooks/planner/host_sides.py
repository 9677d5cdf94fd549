"""What to keep in host memory for good where a context does not fit beside any weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.plan.step_costs import HostSide

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.model.graph import ModelGraph

_STEPS = 8


def cache_sides(model: ModelGraph) -> list[HostSide]:
    """Return the KV caches of ever more of the first layers, up to all of them."""
    layers = sorted(layer.layer for layer in model.cache.layers)
    return [HostSide(kv_layers=frozenset(some)) for some in _ever_more(layers)]


def layer_sides(model: ModelGraph) -> list[HostSide]:
    """Return ever more of the first layers, whole, up to all of them."""
    return [HostSide(layers=len(some)) for some in _ever_more(range(model.shape.layers))]


def _ever_more(layers: Sequence[int]) -> list[Sequence[int]]:
    counts = dict.fromkeys(-(-len(layers) * step // _STEPS) for step in range(1, _STEPS + 1))
    return [layers[:count] for count in counts if count]
