"""How a shard's computing is surrounded: one pair of operations that look the plan up at run time.

Under torch.compile the pair is in the graph, so that plans change without recompiling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import torch
from vllm.model_executor.offloader.base import get_offloader
from vllm.utils.torch_utils import direct_register_custom_op

from xlm_vllm.library import LIBRARY

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_vllm.offloader import XlmOffloader


def surround(
    offloader: XlmOffloader,
    shard: int,
    module: torch.nn.Module,
    *,
    method: str = "forward",
    opaque: bool = False,
) -> None:
    """Let ``module`` compute as ``shard`` of ``offloader`` when its ``method`` is called.

    An ``opaque`` one is a single operation to a compiler, since where it runs is not known before it does;
    it takes and gives one tensor of the same shape.
    """
    compute = getattr(module, method)

    def forward(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            if opaque:
                return torch.ops.xlm.sublayer(activations((*args, *kwargs.values())), shard)
            torch.ops.xlm.enter(activations((*args, *kwargs.values())), shard)
            result = compute(*args, **kwargs)
            torch.ops.xlm.leave(activations(result), shard)
            return result
        return offloader.compute(shard, args, kwargs)

    offloader.computing[shard] = compute
    setattr(module, method, forward)


def activations(values: Any) -> torch.Tensor:
    """Return the first tensor of floating-point numbers in ``values``: activations, not positions."""
    if isinstance(values, torch.Tensor):
        return values
    return next(value for value in values if isinstance(value, torch.Tensor) and value.is_floating_point())


def _sublayer(x: torch.Tensor, shard: int) -> torch.Tensor:
    result: torch.Tensor = cast("XlmOffloader", get_offloader()).compute(shard, (x,), {})
    return result


def _like(x: torch.Tensor, shard: int) -> torch.Tensor:  # noqa: ARG001
    return torch.empty_like(x)


def _enter(x: torch.Tensor, shard: int) -> None:
    cast("XlmOffloader", get_offloader()).runtime.enter(shard, x.shape[0])


def _leave(x: torch.Tensor, shard: int) -> None:  # noqa: ARG001
    cast("XlmOffloader", get_offloader()).runtime.leave(shard)


def _nothing(x: torch.Tensor, shard: int) -> None:  # noqa: ARG001
    return


def _register(name: str, operation: Callable[[torch.Tensor, int], None]) -> None:
    # Declared to change its tensor, so that no compiler moves computing across it.
    direct_register_custom_op(name, operation, mutates_args=["x"], fake_impl=_nothing, target_lib=LIBRARY)


_register("enter", _enter)
_register("leave", _leave)
direct_register_custom_op("sublayer", _sublayer, fake_impl=_like, target_lib=LIBRARY)
