"""The model loader for versions of vLLM that are not supported: it says so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm.model_executor.model_loader.base_loader import BaseModelLoader

if TYPE_CHECKING:
    from vllm.config.load import LoadConfig

    from xlm_plugin.errors import XlmError


def refusing_loader(reason: XlmError) -> type[BaseModelLoader]:
    """Return a loader that raises ``reason`` when vLLM makes one."""

    class RefusingLoader(BaseModelLoader):
        def __init__(self, load_config: LoadConfig) -> None:  # noqa: ARG002
            raise reason

        def download_model(self, model_config: object) -> None:
            raise NotImplementedError

        def load_weights(self, model: object, model_config: object) -> None:
            raise NotImplementedError

    return RefusingLoader
