"""What runs on the host beside a GPU, against the same networks of transformers."""

from __future__ import annotations

from types import SimpleNamespace

import torch
from transformers import LlamaConfig, MixtralConfig
from transformers.models.llama.modeling_llama import LlamaMLP
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock

from xlm_vllm.host import gated_network, routed_experts


def test_a_gated_network_computes_what_transformers_does() -> None:
    from vllm.model_executor.layers.activation import SiluAndMul

    torch.manual_seed(0)
    reference = LlamaMLP(LlamaConfig(hidden_size=64, intermediate_size=96))
    module = SimpleNamespace(
        gate_up_proj=SimpleNamespace(
            weight=torch.cat([reference.gate_proj.weight, reference.up_proj.weight]), bias=None
        ),
        act_fn=SimpleNamespace(forward_native=SiluAndMul.forward_native),
        down_proj=SimpleNamespace(
            weight=reference.down_proj.weight, bias=None, tp_rank=0, tp_size=1, reduce_results=True
        ),
    )
    x = torch.randn(5, 64)

    torch.testing.assert_close(gated_network(module, x), reference(x))


def test_routed_experts_compute_what_transformers_does() -> None:
    torch.manual_seed(0)
    config = MixtralConfig(hidden_size=64, intermediate_size=96, num_local_experts=8, num_experts_per_tok=2)
    reference = MixtralSparseMoeBlock(config)
    for parameter in reference.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    module = SimpleNamespace(w13_weight=reference.experts.gate_up_proj, w2_weight=reference.experts.down_proj)
    x = torch.randn(1, 7, 64)
    logits = torch.nn.functional.linear(x[0], reference.gate.weight)
    weights, selected = logits.softmax(-1).topk(2)
    weights /= weights.sum(-1, keepdim=True)

    found = routed_experts(module, x[0], weights, selected)

    expected = reference(x)
    torch.testing.assert_close(found, expected.reshape(7, 64))
