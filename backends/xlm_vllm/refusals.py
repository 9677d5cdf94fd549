"""What cannot be combined with a plan. Each is told before weights are loaded."""

from __future__ import annotations

from typing import Any

from xlm_plugin.errors import UsageError

# Those whose weights are as large in a worker as in the checkpoint.
_QUANTISATIONS = (
    "awq",
    "awq_marlin",
    "compressed-tensors",
    "fp8",
    "gptq",
    "gptq_marlin",
)


def refuse(vllm_config: Any) -> None:
    """Raise UsageError for options of vLLM that a plan does not go with."""
    _refuse_offloaders(vllm_config.offload_config)
    _refuse_quantisation(vllm_config.model_config)
    if vllm_config.lora_config is not None:
        raise UsageError(
            "LoRA adapters and --load-format xlm cannot be combined.", "Leave out --enable-lora."
        )


def _refuse_offloaders(offload: Any) -> None:
    if offload is None:
        return
    if offload.uva.cpu_offload_gb > 0:
        option = "--cpu-offload-gb"
    elif offload.prefetch.offload_group_size > 0:
        option = "--offload-group-size"
    else:
        return
    raise UsageError(
        f"{option} and --load-format xlm both place weights.", f"Leave out {option}: the plan streams them."
    )


def _refuse_quantisation(model_config: Any) -> None:
    method = model_config.quantization
    if method is None:
        return
    if method not in _QUANTISATIONS:
        raise UsageError(
            f"Weights quantised as '{method}' cannot be placed by a plan.",
            f"Known are: {', '.join(_QUANTISATIONS)}.",
        )
    if getattr(model_config.hf_config, "quantization_config", None) is None:
        raise UsageError(
            f"--quantization {method} changes the size of weights as they are loaded, which no plan knows.",
            "Take a checkpoint that is quantised already.",
        )
