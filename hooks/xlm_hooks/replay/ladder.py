"""The published ladder of ``-ngl``, climbed by the memory rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_hooks.replay.published import LADDER, LADDER_BUDGETS_MIB, MODELS
from xlm_plugin.model.cache import CacheContext
from xlm_plugin.plan.compute import device_compute
from xlm_plugin.plan.driver import CONTEXT_BYTES
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph

_UBATCH_TOKENS = 1024


def layers_that_fit(model: ModelGraph, context: CacheContext, budget_bytes: int) -> int:
    """Return the largest ``-ngl``; the output head counts as a layer and goes first.

    The published engine reserves logits for every token of a step, and the driver's context counts.
    """
    compute = device_compute(model, context, crossing=True, outputs=context.step_tokens)
    head = next(shard for shard in model.shards if shard.kind == "output")
    layer_bytes = sum(shard.bytes for shard in model.shards if shard.layer == 0)
    layer_bytes += model.cache.kv_bytes(context) // model.shape.layers
    left_bytes = budget_bytes - compute.total_bytes - CONTEXT_BYTES - head.bytes
    return min(left_bytes // layer_bytes, model.shape.layers) + 1 if left_bytes >= 0 else 0


def share_within_one() -> float:
    """Return the share of published cells that are met within one layer."""
    hits = [
        abs(layers_that_fit(model, context, budget_mib * MIB) - published) <= 1
        for (name, tokens), ladder in LADDER.items()
        for model, context in [(MODELS[name](), CacheContext(tokens, ubatch_tokens=_UBATCH_TOKENS))]
        for budget_mib, published in zip(LADDER_BUDGETS_MIB, ladder, strict=False)
    ]
    return sum(hits) / len(hits)
