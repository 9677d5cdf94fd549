"""Linear layers on vLLM's CPU build, which packs each weight once and then computes from its packed copy.

A plan would move the weight in vain. Here it is packed again wherever it has moved, by vLLM's own kernels, so
that the numbers stay the same: that is part of the emulated device's copying.
"""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import torch
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.model_executor.layers.utils import dispatch_cpu_unquantized_gemm
from vllm.utils.torch_utils import direct_register_custom_op

from xlm_vllm.library import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from vllm.model_executor.layers.linear import LinearBase

    Compute = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None], torch.Tensor]


class MovableLinearMethod(UnquantizedLinearMethod):
    """Computes from the weight as it is now, packed beforehand where it has arrived on the device."""

    def __init__(self, layer: LinearBase) -> None:
        self.__dict__.update(layer.quant_method.__dict__)
        self.parameter = layer.weight
        self._bias = layer.bias
        self._kept: tuple[int, Compute] | None = None
        self._number = next(_numbers)
        _methods[self._number] = self

    def process_weights_after_loading(self, layer: torch.nn.Module) -> None:
        """Leave the weight as it is."""

    def apply(
        self, layer: torch.nn.Module, x: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        if torch.compiler.is_compiling():
            return torch.ops.xlm.linear(x, layer.weight, bias, self._number)
        return self.compute(x, layer.weight, bias)

    def compute(self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        """Return ``x`` (tokens, in) times ``weight`` (out, in), plus ``bias``."""
        if self._kept is not None and self._kept[0] == weight.data_ptr():
            return self._kept[1](x, weight, bias)
        return _packed(weight, bias)(x, weight, bias)

    def keep(self, weight: torch.Tensor) -> None:
        """Pack ``weight``, for as long as it stays where it is."""
        self._kept = (weight.data_ptr(), _packed(weight, self._bias))

    def forget(self) -> None:
        """Drop the packed copy."""
        self._kept = None


def make_movable(linears: Iterable[LinearBase]) -> list[MovableLinearMethod]:
    """Let those of ``linears`` that are not quantised compute from weights that move."""
    methods = []
    for linear in linears:
        if type(linear.quant_method) is UnquantizedLinearMethod:
            linear.quant_method = MovableLinearMethod(linear)
            methods.append(linear.quant_method)
    return methods


def _packed(weight: torch.Tensor, bias: torch.Tensor | None) -> Compute:
    """Return the kernel that vLLM chooses for ``weight``, with what it has packed."""
    layer = SimpleNamespace(weight=weight, bias=bias)
    dispatch_cpu_unquantized_gemm(layer, remove_weight=False)
    compute: Compute = layer.cpu_linear
    return compute


_numbers = count()
_methods: WeakValueDictionary[int, MovableLinearMethod] = WeakValueDictionary()


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, method: int) -> torch.Tensor:
    return _methods[method].compute(x, weight, bias)


def _like_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,  # noqa: ARG001
    method: int,  # noqa: ARG001
) -> torch.Tensor:
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


direct_register_custom_op("linear", _linear, fake_impl=_like_linear, target_lib=LIBRARY)
