"""The offload curve of arXiv 2605.19593: speed against the share of layers on the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.replay.placement import placeable
from xlm_plugin.plan.simulate import CPU, PIN, simulate_step
from xlm_plugin.plan.step_costs import CostModel, StepLoad

if TYPE_CHECKING:
    from xlm_plugin.machine.rates import Rates
    from xlm_plugin.model.graph import ModelGraph

_CACHED_TOKENS = 512


def speed_share(model: ModelGraph, rates: Rates, layer_share: float) -> float:
    """Return decode speed with the last ``layer_share`` of layers on the device, as a share of all there."""
    shards = placeable(model)
    costs = CostModel(model, shards, rates).costs(StepLoad(1, _CACHED_TOKENS))
    first = round((1 - layer_share) * model.shape.layers)
    on_host = np.array([shard.layer is not None and shard.layer < first for shard in shards])
    with_cache = np.array([shard.kind == "attn" for shard in shards])
    whole, partly = (
        simulate_step(
            costs, np.where(host, CPU, PIN).astype(np.int8), host_cache=host & with_cache
        ).step_seconds
        for host in (np.zeros_like(on_host), on_host)
    )
    return whole / partly
