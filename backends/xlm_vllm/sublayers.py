"""The shards of a decoder layer: which modules they are, and which parameters move with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from vllm.model_executor.layers.fused_moe.routed_experts import RoutedExperts
from vllm.model_executor.layers.linear import LinearBase

from xlm_plugin.model.hf_names import huggingface_role
from xlm_plugin.model.roles import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

# In order of execution: a layer's shared experts run before its routed ones.
_KINDS = ("attn", "ssm", "ffn", "shared_experts", "experts")
# What a mixture's kernel keeps references to: it must stay where it is.
_KEPT_BY_KERNELS = ("scale", "zero", "bias", "zp", "global", "g_idx")
_ANY_LAYER = 1 << 20


@dataclass(frozen=True)
class Sublayer:
    """A shard of this worker: the module whose forward is its computing."""

    name: str
    kind: str
    module: torch.nn.Module

    def parameters(self) -> tuple[torch.nn.Parameter, ...]:
        """Return what moves with the shard, as it is now: matrices, once the kernels have packed them."""
        if isinstance(self.module, RoutedExperts):
            own = self.module.named_parameters(recurse=False)
            return tuple(
                p for name, p in own if p.ndim >= 2 and not any(key in name for key in _KEPT_BY_KERNELS)
            )
        nested = [module for module in self.module.modules() if isinstance(module, RoutedExperts)]
        elsewhere = {id(parameter) for module in nested for parameter in module.parameters()}
        return tuple(
            parameter
            for parameter in self.module.parameters()
            if id(parameter) not in elsewhere and _is_matrix(parameter)
        )

    def linears(self) -> Iterator[LinearBase]:
        """Yield the linear layers inside."""
        return (module for module in self.module.modules() if isinstance(module, LinearBase))


def find_sublayers(layer: torch.nn.Module) -> tuple[Sublayer, ...]:
    """Return the shards of a decoder layer in order of execution; none for a layer that is not one."""
    modules: dict[tuple[str, str], list[str]] = {}
    paths = dict(layer.named_modules())
    for path, module in paths.items():
        prefix = _full_name(module)
        if prefix is None or not any(_is_matrix(p) for p in module.parameters(recurse=False)):
            continue
        role = huggingface_role(f"{prefix}.weight", _ANY_LAYER)
        if role.stage is Stage.LAYER and (role.matrix or isinstance(module, RoutedExperts)):
            modules.setdefault((role.shard, role.kind), []).append(path)
    found = [
        Sublayer(shard, kind, paths[_common_parent(members)])
        for (shard, kind), members in modules.items()
        if kind in _KINDS
    ]
    return tuple(sorted(found, key=lambda sublayer: _KINDS.index(sublayer.kind)))


def selects_experts(sublayer: Sublayer) -> bool:
    """Whether the routing of ``sublayer``, if it has any, is known before its kernel runs, and whole here."""
    module = sublayer.module
    return not isinstance(module, RoutedExperts) or not (module.quant_method.is_monolithic or module.use_ep)


def _full_name(module: torch.nn.Module) -> str | None:
    """Return what vLLM calls a linear layer or a mixture, such as ``model.layers.3.mlp.experts``."""
    if isinstance(module, RoutedExperts):
        return str(module.layer_name)
    return str(module.prefix) if isinstance(module, LinearBase) else None


def _common_parent(paths: list[str]) -> str:
    """Return the path of the innermost module that holds all of ``paths``."""
    common = paths[0].split(".")
    for path in paths[1:]:
        segments = path.split(".")
        same = [own for own, other in zip(common, segments, strict=False) if own == other]
        common = common[: len(same)]
    return ".".join(common)


def _is_matrix(parameter: torch.nn.Parameter) -> bool:
    return sum(extent > 1 for extent in parameter.shape) >= 2
