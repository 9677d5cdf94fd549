from __future__ import annotations

import json
from typing import Any

import pytest

from xlm_plugin.errors import UsageError
from xlm_plugin.units import GIB
from xlm_vllm.config import XlmConfig, read_config
from xlm_vllm.flags import EngineRequest, check_extra, plugin_environment


def a_request(**changes: Any) -> EngineRequest:
    usual: dict[str, Any] = {
        "model": "/models/some",
        "config": XlmConfig(vram_bytes=6 * GIB),
        "budget_bytes": 6 * GIB,
        "memory_bytes": 24 * GIB,
        "context_tokens": 4096,
        "step_tokens": 512,
        "sequences": 8,
    }
    return EngineRequest(**{**usual, **changes})


def flags(request: EngineRequest) -> dict[str, str]:
    program, command, model, *words = request.command()
    assert (program, command, model) == ("vllm", "serve", request.model)
    return dict(zip(words[::2], words[1::2], strict=True))


def test_the_loader_the_worker_and_the_configuration_belong_together() -> None:
    found = flags(a_request())

    assert found["--load-format"] == "xlm"
    assert found["--worker-cls"] == "xlm_vllm.worker.XlmWorker"
    assert read_config(json.loads(found["--additional-config"])) == XlmConfig(vram_bytes=6 * GIB)


def test_the_budget_is_a_share_of_the_device_rounded_down() -> None:
    assert flags(a_request())["--gpu-memory-utilization"] == "0.25"
    assert flags(a_request(memory_bytes=7 * GIB))["--gpu-memory-utilization"] == "0.857"
    assert flags(a_request(memory_bytes=10_000 * GIB))["--gpu-memory-utilization"] == "0.01"


def test_a_cpu_build_gets_its_own_worker() -> None:
    assert flags(a_request(on_cpu=True))["--worker-cls"] == "xlm_vllm.worker.XlmCpuWorker"


def test_only_what_was_asked_for_is_set() -> None:
    assert "--kv-cache-memory-bytes" not in flags(a_request())
    assert flags(a_request(kv_bytes=GIB))["--kv-cache-memory-bytes"] == str(GIB)
    assert "--tensor-parallel-size" not in flags(a_request())
    assert flags(a_request(ranks=2))["--tensor-parallel-size"] == "2"


def test_what_the_user_adds_comes_last() -> None:
    assert a_request().command(["--enforce-eager"])[-1] == "--enforce-eager"


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("--max-model-len", "Give --ctx before the --."),
        ("--max_model_len=7", "Give --ctx before the --."),
        ("-tp", "Give --tensor-parallel before the --."),
        ("--cpu-offload-gb", "Leave it out."),
        ("--additional-config.xlm.vram", "Leave it out."),
    ],
)
def test_what_is_ours_to_set_is_refused(word: str, hint: str) -> None:
    with pytest.raises(UsageError) as raised:
        check_extra(["--enforce-eager", word])

    assert raised.value.hint == hint


@pytest.mark.parametrize(
    ("present", "wanted"),
    [({}, "xlm"), ({"VLLM_PLUGINS": "lora"}, "lora,xlm"), ({"VLLM_PLUGINS": "xlm"}, "xlm")],
)
def test_plugins_that_vllm_loads_already_stay(present: dict[str, str], wanted: str) -> None:
    assert plugin_environment(present) == {"VLLM_PLUGINS": wanted}
