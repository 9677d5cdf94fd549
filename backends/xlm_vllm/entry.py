"""What vLLM's plugin entry point calls in each of its processes. It changes nothing for who does not ask."""

from __future__ import annotations

from xlm_plugin.errors import EngineError
from xlm_vllm.versions import check_version, installed_version

_LOAD_FORMAT = "xlm"
_registered = False


def register() -> None:
    """Make the model loader known to vLLM. Safe to call more than once.

    With a version of vLLM that is not supported the loader refuses, once it is asked for.
    """
    global _registered
    if _registered:
        return
    _registered = True
    from vllm.model_executor.model_loader import register_model_loader

    try:
        check_version(installed_version())
    except EngineError as error:
        from xlm_vllm.refusing import refusing_loader

        register_model_loader(_LOAD_FORMAT)(refusing_loader(error))
        return
    from xlm_vllm.loader import XlmModelLoader

    register_model_loader(_LOAD_FORMAT)(XlmModelLoader)
