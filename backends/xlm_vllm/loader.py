"""vLLM's model loader ``xlm``: the default one, with an offloader that carries out a plan."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
from vllm.model_executor.offloader.base import set_offloader

from xlm_vllm.config import read_config
from xlm_vllm.graphs import cut_graphs
from xlm_vllm.offloader import XlmOffloader
from xlm_vllm.planning import plan_for

if TYPE_CHECKING:
    from vllm.config import ModelConfig, VllmConfig
    from vllm.config.load import LoadConfig


class XlmModelLoader(DefaultModelLoader):
    """Loads a checkpoint the default way into shards that an ``XlmOffloader`` places."""

    def __init__(self, load_config: LoadConfig) -> None:
        super().__init__(dataclasses.replace(load_config, load_format="auto"))

    def load_model(
        self, vllm_config: VllmConfig, model_config: ModelConfig, prefix: str = ""
    ) -> torch.nn.Module:
        """Return the loaded model. Draft models of speculative decoding are none of the plan's business."""
        if model_config is not vllm_config.model_config:
            return super().load_model(vllm_config, model_config, prefix)
        config = read_config(vllm_config.additional_config)
        offloader = XlmOffloader(
            plan_for(vllm_config, config),
            torch.device(vllm_config.device_config.device),
            pinned_limit_bytes=config.pinned_limit_bytes,
            link_bytes_per_s=config.link_bytes_per_s,
        )
        if offloader.crosses:
            cut_graphs(vllm_config.compilation_config)
        set_offloader(offloader)
        model = super().load_model(vllm_config, model_config, prefix)
        # Not every model runner of vLLM does it.
        offloader.post_init()
        return model
