from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp.launch import planned_spec, stock_spec
from xlm_plugin.backend import LaunchOptions
from xlm_plugin.errors import EngineError, ModelError, PlanError, UsageError
from xlm_plugin.plan.placed import on_host, placed
from xlm_plugin.testing import fake_device, tiny_model, tiny_plan

if TYPE_CHECKING:
    from xlm_llamacpp.engine import InstalledEngine
    from xlm_plugin.backend import LaunchSpec
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan


def value(spec: LaunchSpec, option: str) -> str:
    return spec.command[spec.command.index(option) + 1]


def emulated(plan: Plan) -> Plan:
    return plan.model_copy(update={"device": "EMU0", "emulated": True})


def test_a_planned_engine_runs_on_the_wrapping_device_with_fit_off(spec: LaunchSpec) -> None:
    assert value(spec, "--device") == "XLM0"
    assert value(spec, "--fit") == "off"
    assert value(spec, "--n-gpu-layers") == "all"
    assert spec.environment["XLM_DEVICE"] == "FAKE0"


def test_the_device_finds_plan_and_socket_in_one_runtime_directory(spec: LaunchSpec, plan: Plan) -> None:
    path = Path(spec.environment["XLM_PLAN"])
    assert json.loads(spec.files[path]) == json.loads(plan.to_json())
    assert str(spec.socket) == spec.environment["XLM_SOCKET"]
    assert path.parent == Path(spec.environment["XLM_SOCKET"]).parent


def test_the_engine_gets_the_context_that_the_plan_pays_for(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    context = plan.context.model_copy(
        update={
            "tokens": 4096,
            "sequences": 2,
            "ubatch_tokens": 256,
            "kv_type_v": "q8_0",
            "flash_attention": False,
        }
    )
    spec = planned_spec(
        engine, plan.model_copy(update={"context": context}), model, LaunchOptions(threads=3, port=8080)
    )
    assert value(spec, "--ctx-size") == "4096"
    assert value(spec, "--parallel") == "2"
    assert value(spec, "--ubatch-size") == "256"
    assert (value(spec, "--cache-type-k"), value(spec, "--cache-type-v")) == ("f16", "q8_0")
    assert value(spec, "--flash-attn") == "off"
    assert value(spec, "--threads") == "3"
    assert spec.url == "http://127.0.0.1:8080"


def test_an_emulated_device_is_as_large_as_the_budget_and_as_fast_as_its_link(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    options = LaunchOptions(device=fake_device(link_bytes_per_s=8e9))
    environment = planned_spec(engine, emulated(plan), model, options).environment
    assert environment["XLM_EMULATED"].startswith(
        f"memory_bytes={plan.budget_bytes},link_bytes_per_s=8000000000,link_latency_s="
    )


def test_a_real_device_is_not_told_about_emulation(spec: LaunchSpec) -> None:
    assert "XLM_EMULATED" not in spec.environment
    assert "--no-repack" not in spec.command


def test_the_stock_reference_runs_on_the_bare_device_without_a_plan(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    spec = stock_spec(engine, emulated(plan), model, LaunchOptions())
    assert value(spec, "--device") == "EMU0"
    assert "--no-repack" in spec.command
    assert not {"XLM_PLAN", "XLM_DEVICE", "XLM_SOCKET"} & set(spec.environment)
    assert not spec.files


def test_the_stock_reference_on_an_emulated_device_has_room_for_the_whole_model(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    settings = stock_spec(engine, emulated(plan), model, LaunchOptions()).environment["XLM_EMULATED"]
    assert int(settings.split(",")[0].removeprefix("memory_bytes=")) >= model.weight_bytes + plan.budget_bytes


def test_stock_runs_on_the_cpu_what_the_plan_always_runs_there(
    engine: InstalledEngine, model: ModelGraph
) -> None:
    plan = tiny_plan(model)
    decode, prefill = plan.tiers
    always, sometimes = {"blk.0.ffn": "cpu"}, {"blk.1.ffn": "cpu"}
    tiers = (
        decode.model_copy(update={"placements": decode.placements | always | sometimes}),
        prefill.model_copy(update={"placements": prefill.placements | always}),
    )
    spec = stock_spec(engine, plan.model_copy(update={"tiers": tiers}), model, LaunchOptions())
    assert value(spec, "-ot") == (
        r"^(blk\.0\.ffn_gate\.weight|blk\.0\.ffn_up\.weight|blk\.0\.ffn_down\.weight)$=CPU"
    )
    assert "--no-op-offload" in spec.command


def test_host_layers_are_the_engines_first_ones(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    on_cpu = placed(plan, {1: lambda _: "cpu"})
    split = planned_spec(engine, on_host(on_cpu, model, layers=1), model, LaunchOptions())
    # All layers but one, and the output head.
    assert value(split, "--n-gpu-layers") == str(model.shape.layers)
    whole = planned_spec(engine, plan, model, LaunchOptions())
    assert value(whole, "--n-gpu-layers") == "all"


def test_a_plan_for_another_model_is_refused(engine: InstalledEngine, plan: Plan) -> None:
    with pytest.raises(PlanError, match="another model"):
        planned_spec(engine, plan, tiny_model(layers=3), LaunchOptions())


def test_a_model_that_is_no_gguf_file_is_refused(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    with pytest.raises(ModelError, match="not a GGUF file"):
        planned_spec(engine, plan, dataclasses.replace(model, format="huggingface"), LaunchOptions())


@pytest.mark.parametrize(
    "argument", ["-c", "--ctx-size=9", "--ctx_size", "-ngl", "--device", "-nkvo", "-cmoe", "--api-prefix"]
)
def test_engine_arguments_that_the_plan_decides_are_refused(
    engine: InstalledEngine, plan: Plan, model: ModelGraph, argument: str
) -> None:
    with pytest.raises(UsageError, match="xlm decides"):
        planned_spec(engine, plan, model, LaunchOptions(extra_arguments=(argument, "9")))


def test_other_engine_arguments_come_last(engine: InstalledEngine, plan: Plan, model: ModelGraph) -> None:
    spec = planned_spec(engine, plan, model, LaunchOptions(extra_arguments=("--jinja",)))
    assert spec.command[-1] == "--jinja"


@pytest.mark.parametrize(
    ("host", "url"),
    [("0.0.0.0", "http://127.0.0.1:80"), ("::1", "http://[::1]:80"), ("box", "http://box:80")],
)
def test_the_url_is_one_that_this_machine_reaches(
    engine: InstalledEngine, plan: Plan, model: ModelGraph, host: str, url: str
) -> None:
    assert planned_spec(engine, plan, model, LaunchOptions(host=host, port=80)).url == url


def test_a_host_that_cannot_be_listened_on_is_named(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    with pytest.raises(EngineError, match=r"192\.0\.2\.1"):
        planned_spec(engine, plan, model, LaunchOptions(host="192.0.2.1"))


def test_the_first_file_of_a_split_model_is_loaded(
    engine: InstalledEngine, plan: Plan, model: ModelGraph
) -> None:
    files = (Path("m-00001-of-00002.gguf"), Path("m-00002-of-00002.gguf"))
    spec = planned_spec(engine, plan, dataclasses.replace(model, files=files), LaunchOptions())
    assert value(spec, "--model") == "m-00001-of-00002.gguf"
