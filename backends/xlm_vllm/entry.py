"""What vLLM's plugin entry point calls in each of its processes. It must cost nothing and change nothing."""

from __future__ import annotations

_LOAD_FORMAT = "xlm"
_registered = False


def register() -> None:
    """Make the model loader known to vLLM. Safe to call more than once."""
    global _registered
    if _registered:
        return
    _registered = True
    from vllm.model_executor.model_loader import register_model_loader

    from xlm_vllm.loader import XlmModelLoader

    register_model_loader(_LOAD_FORMAT)(XlmModelLoader)
