"""What would move nothing, or something else than was planned, ends the engine with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.vllm.plans import PREFILL, by_kind, plan_by
from xlm_plugin.errors import EngineError, PlanError, XlmError
from xlm_plugin.plan.document import Plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from integration.vllm.asking import Asker


def test_a_layer_that_vllm_skips_ends_the_engine(tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny("llama")
    asker.start(folder, plan_by(folder, {PREFILL: by_kind("stream")}))
    offloader = asker.offloader
    layer = offloader._sublayers[3].module
    layer.forward = offloader.computing[3]

    with pytest.raises(EngineError, match=r"ran a step past shard 'blk\.1\.ffn'"):
        asker.ask()


def test_bytes_that_were_not_planned_end_the_engine(tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny("llama")
    asker.start(folder, plan_by(folder, {PREFILL: by_kind("stream")}))
    asker.offloader.runtime.weights.copies.moved_bytes += 1

    with pytest.raises(EngineError, match="bytes were copied to the device where the plan asks for"):
        asker.ask()


def test_weights_that_vllm_packs_away_are_noticed(
    tiny: Callable[[str], Path], asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny("llama")
    monkeypatch.setattr("xlm_vllm.offloader.make_movable", lambda linears: list(linears)[:0])

    with pytest.raises(PlanError, match=r"Shard 'blk\.0\.attn' has 0 bytes in vLLM"):
        asker.start(folder, plan_by(folder, {PREFILL: by_kind("stream")}))


def test_a_model_without_layers_that_can_be_placed_is_refused(
    tiny: Callable[[str], Path], asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tiny("llama")
    monkeypatch.setattr("xlm_vllm.offloader.find_sublayers", lambda layer: ())  # noqa: ARG005

    with pytest.raises(EngineError, match="without decoder layers that can be placed"):
        asker.start(folder, plan_by(folder, {PREFILL: by_kind("stream")}))


def test_attention_on_the_cpu_is_refused(tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny("llama")

    with pytest.raises(PlanError, match=r"runs shard 'blk\.0\.attn' on the CPU"):
        asker.start(folder, plan_by(folder, {PREFILL: by_kind("pin", attn="cpu")}))


def test_a_plan_that_lacks_a_shard_is_refused(tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny("llama")
    document = plan_by(folder, {PREFILL: by_kind("stream")}).model_dump(mode="json")
    lost = document["shards"].pop()["name"]
    document["tiers"][0]["placements"].pop(lost)

    with pytest.raises(XlmError, match=f"does not place shard '{lost}'"):
        asker.start(folder, Plan.model_validate(document))


def test_a_version_that_is_not_known_is_refused_when_the_loader_is_asked_for() -> None:
    from xlm_vllm.refusing import refusing_loader

    loader = refusing_loader(EngineError("vLLM 0.99 is not supported."))

    with pytest.raises(EngineError, match=r"vLLM 0\.99 is not supported"):
        loader(None)
