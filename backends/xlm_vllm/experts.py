"""Routed experts: surrounded where their routing is known, so that only selected ones need to move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from xlm_vllm.host import routed_experts
from xlm_vllm.schedule import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_vllm.offloader import XlmOffloader

    Compute = Callable[..., torch.Tensor]


def surround_experts(offloader: XlmOffloader, shard: int, experts: torch.nn.Module) -> None:
    """Let ``experts`` compute as ``shard`` of ``offloader``.

    vLLM calls them inside one of its own opaque operations, so no compiler sees what is done here.
    """
    modular, monolithic = experts.forward_modular, experts.forward_monolithic

    def forward_modular(**kwargs: Any) -> torch.Tensor:
        runtime = offloader.runtime
        if runtime.is_idle:
            return modular(**kwargs)
        action = runtime.enter(shard, kwargs["x"].shape[0])
        if action is Action.SELECT:
            return _compute_selected(offloader, shard, modular, kwargs)
        if action is Action.HOST and offloader.crosses:
            return routed_experts(experts, kwargs["x"], kwargs["topk_weights"], kwargs["topk_ids"])
        result = modular(**kwargs)
        runtime.leave(shard)
        return result

    def forward_monolithic(**kwargs: Any) -> torch.Tensor:
        return offloader.compute(shard, (), kwargs)

    offloader.computing[shard] = monolithic
    experts.forward_modular = forward_modular
    experts.forward_monolithic = forward_monolithic


def _compute_selected(
    offloader: XlmOffloader, shard: int, modular: Compute, kwargs: dict[str, Any]
) -> torch.Tensor:
    """Compute with the experts that ``topk_ids`` (tokens, selected) names, copied into the cache."""
    runtime = offloader.runtime
    cache, weights = runtime.expert_cache, runtime.shards[shard]
    topk_ids = kwargs["topk_ids"]
    selected = topk_ids.unique().tolist()
    if len(selected) > cache.experts:
        # Too many for the cache at once: each half of the tokens selects fewer.
        half = topk_ids.shape[0] // 2
        parts = (_rows(kwargs, slice(None, half)), _rows(kwargs, slice(half, None)))
        return torch.cat([_compute_selected(offloader, shard, modular, part) for part in parts])
    masters = weights.views(weights.master)
    slots = cache.hold(shard, selected, masters)
    slot_of_expert = torch.zeros(masters[0].shape[0], dtype=topk_ids.dtype, device=topk_ids.device)
    slot_of_expert[list(slots)] = torch.tensor(
        list(slots.values()), dtype=topk_ids.dtype, device=topk_ids.device
    )
    weights.bind_to(cache.stacks(masters))
    return modular(**{**kwargs, "topk_ids": slot_of_expert[topk_ids.long()]})


def _rows(kwargs: dict[str, Any], rows: slice) -> dict[str, Any]:
    """Return the arguments for some of the tokens."""
    return {key: value[rows] if isinstance(value, torch.Tensor) else value for key, value in kwargs.items()}
