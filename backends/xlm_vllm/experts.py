"""Routed experts: surrounded where their routing is known, so that only selected ones need to move."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from vllm.model_executor.offloader.base import get_offloader
from vllm.utils.torch_utils import direct_register_custom_op

from xlm_vllm.hooks import surround
from xlm_vllm.host import routed_experts
from xlm_vllm.library import LIBRARY
from xlm_vllm.schedule import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_vllm.offloader import XlmOffloader

    Compute = Callable[..., torch.Tensor]


def surround_experts(offloader: XlmOffloader, shard: int, experts: torch.nn.Module) -> None:
    """Let ``experts`` compute as ``shard`` of ``offloader``.

    On a GPU vLLM calls them inside an opaque operation of its own; on the CPU a compiler follows them, and
    finds an opaque operation of ours.
    """
    surround(offloader, shard, experts, method="forward_monolithic")
    modular = experts.forward_modular

    def compute(**kwargs: Any) -> torch.Tensor:
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

    def forward_modular(**kwargs: Any) -> torch.Tensor:
        if torch.compiler.is_compiling():
            # Shared experts have run by then: only kernels for GPUs run them at the same time.
            return torch.ops.xlm.experts(kwargs["x"], kwargs["topk_weights"], kwargs["topk_ids"], shard)
        return compute(**kwargs)

    offloader.computing_routed[shard] = compute
    experts.forward_modular = forward_modular


def _experts(x: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor, shard: int) -> torch.Tensor:
    routed = {"x": x, "topk_weights": topk_weights, "topk_ids": topk_ids}
    compute: Compute = get_offloader().computing_routed[shard]
    return compute(**routed, shared_experts=None, shared_experts_input=None)


def _like_experts(
    x: torch.Tensor,
    topk_weights: torch.Tensor,  # noqa: ARG001
    topk_ids: torch.Tensor,  # noqa: ARG001
    shard: int,  # noqa: ARG001
) -> torch.Tensor:
    return torch.empty_like(x)


direct_register_custom_op("experts", _experts, fake_impl=_like_experts, target_lib=LIBRARY)


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
