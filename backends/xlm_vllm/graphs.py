"""CUDA graphs beside moving weights: graphs are cut where weights move, and captured anew where they went."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.compilation.cuda_graph import CUDAGraphWrapper
from vllm.config import CompilationMode, CUDAGraphMode

if TYPE_CHECKING:
    from vllm.config import CompilationConfig

# A captured graph repeats kernels with the addresses they had, and none of what Python did in between.
_MOVES = (
    "xlm::enter",
    "xlm::leave",
    "xlm::sublayer",
    "vllm::moe_forward",
    "vllm::moe_forward_shared",
)


def cut_graphs(compilation: CompilationConfig) -> None:
    """Keep what moves weights out of captured graphs, so that only the pieces in between are captured."""
    if compilation.mode != CompilationMode.VLLM_COMPILE:
        compilation.cudagraph_mode = CUDAGraphMode.NONE
        return
    present = compilation.splitting_ops or []
    compilation.splitting_ops = [*present, *(name for name in _MOVES if name not in present)]
    if compilation.cudagraph_mode.has_full_cudagraphs():
        compilation.cudagraph_mode = CUDAGraphMode.PIECEWISE


def padded_tokens(compilation: CompilationConfig, new_tokens: int) -> int:
    """Return the size of the graph that runs a step of ``new_tokens`` tokens, or just those without one."""
    if compilation.cudagraph_mode == CUDAGraphMode.NONE:
        return new_tokens
    covering = (size for size in compilation.cudagraph_capture_sizes or () if size >= new_tokens)
    return min(covering, default=new_tokens)


def capture_anew(model_runner: Any) -> None:
    """Replace captured graphs after weights have got other addresses."""
    if model_runner.compilation_config.cudagraph_mode != CUDAGraphMode.NONE:
        CUDAGraphWrapper.clear_all_graphs()
        model_runner.capture_model()
