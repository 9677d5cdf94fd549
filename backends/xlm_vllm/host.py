"""Feed-forward networks computed on the host, from the host's own copies of their weights.

vLLM's kernels for a GPU do not run there, so this is written in plain torch: gated networks that are not
quantised, dense or routed. Activations cross to the host and back once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import linear
from vllm.distributed import tensor_model_parallel_all_reduce
from vllm.model_executor.layers.linear import UnquantizedLinearMethod

if TYPE_CHECKING:
    from xlm_vllm.sublayers import Sublayer

_HOST = torch.device("cpu")


def runs_on_host(sublayer: Sublayer) -> bool:
    """Whether the host can compute ``sublayer``."""
    module: Any = sublayer.module
    if sublayer.kind == "experts":
        return (
            type(module.quant_method).__name__ == "UnquantizedFusedMoEMethod"
            and module.activation.value == "silu"
            and not module.use_ep
            and not module.apply_router_weight_on_input
            and not hasattr(module, "w13_bias")
        )
    return (
        sublayer.kind in ("ffn", "shared_experts")
        and {name for name, _ in module.named_children()} == {"gate_up_proj", "down_proj", "act_fn"}
        and all(isinstance(found.quant_method, UnquantizedLinearMethod) for found in sublayer.linears())
        and hasattr(module.act_fn, "forward_native")
    )


def gated_network(module: Any, x: torch.Tensor) -> torch.Tensor:
    """Return what a network of ``gate_up_proj``, ``act_fn`` and ``down_proj`` makes of ``x`` (tokens, width).

    The weights of ``module`` must be bound to host memory.
    """
    up, down = module.gate_up_proj, module.down_proj
    hidden = linear(x.to(_HOST), up.weight, _bias(up))
    inner = module.act_fn.forward_native(hidden)
    # One rank adds the bias, as vLLM has it.
    result = linear(inner, down.weight, _bias(down) if down.tp_rank == 0 else None).to(x.device)
    if down.reduce_results and down.tp_size > 1:
        result = tensor_model_parallel_all_reduce(result)
    return result


def routed_experts(
    module: Any, x: torch.Tensor, topk_weights: torch.Tensor, topk_ids: torch.Tensor
) -> torch.Tensor:
    """Return the weighted sum of the experts that each token of ``x`` (tokens, width) selects.

    ``topk_weights`` and ``topk_ids`` are (tokens, selected). The stacks of ``module`` must be bound to host
    memory: ``w13_weight`` (experts, 2 * inner, width), ``w2_weight`` (experts, width, inner).
    """
    tokens, weights, selected = x.to(_HOST), topk_weights.to(_HOST), topk_ids.to(_HOST)
    total = torch.zeros(tokens.shape, dtype=torch.float32)
    for expert in selected.unique().tolist():
        row, rank = torch.where(selected == expert)
        gate, up = linear(tokens[row], module.w13_weight[expert]).chunk(2, dim=-1)
        made = linear(torch.nn.functional.silu(gate) * up, module.w2_weight[expert])
        total.index_add_(0, row, made.float() * weights[row, rank, None].float())
    return total.to(device=x.device, dtype=x.dtype)


def _bias(layer: Any) -> torch.Tensor | None:
    return None if layer.bias is None else layer.bias.to(_HOST)
