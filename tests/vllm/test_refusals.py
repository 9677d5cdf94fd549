from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from xlm_plugin.errors import UsageError
from xlm_vllm.refusals import refuse


def a_config(
    *,
    offload_gb: float = 0,
    group: int = 0,
    lora: object = None,
    quantization: str | None = None,
    checkpoint: object = None,
) -> Any:
    return SimpleNamespace(
        offload_config=SimpleNamespace(
            uva=SimpleNamespace(cpu_offload_gb=offload_gb), prefetch=SimpleNamespace(offload_group_size=group)
        ),
        lora_config=lora,
        model_config=SimpleNamespace(
            quantization=quantization, hf_config=SimpleNamespace(quantization_config=checkpoint)
        ),
    )


def test_a_plain_engine_and_a_quantised_checkpoint_are_taken() -> None:
    refuse(a_config())
    refuse(a_config(quantization="fp8", checkpoint={"quant_method": "fp8"}))


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (a_config(offload_gb=4), "Leave out --cpu-offload-gb"),
        (a_config(group=8), "Leave out --offload-group-size"),
        (a_config(lora=object()), "Leave out --enable-lora"),
        (a_config(quantization="bitsandbytes"), "quantised as 'bitsandbytes' cannot be placed"),
        (a_config(quantization="fp8"), "quantised already"),
    ],
)
def test_what_a_plan_does_not_go_with_is_named(config: Any, sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        refuse(config)

    assert sentence in str(raised.value)
