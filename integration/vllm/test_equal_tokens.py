"""Whatever a plan does with the weights, vLLM says what it says without us, to the last bit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.vllm.plans import DECODE, PREFILL, alternating, by_kind, plan_by

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from integration.vllm.asking import Asker
    from integration.vllm.plans import Place

MODELS = ("llama", "mixtral", "qwen3moe")
TIERS: dict[str, Mapping[int, Place]] = {
    "all pinned": {PREFILL: by_kind("pin")},
    "all streamed": {PREFILL: by_kind("stream")},
    "mixed": {PREFILL: by_kind("stream", attn="pin")},
    "layers in turn": {PREFILL: alternating("pin", "stream")},
    "run on the CPU": {PREFILL: by_kind("cpu", attn="pin")},
    "another plan for prefill": {
        DECODE: by_kind("cpu", attn="stream"),
        PREFILL: by_kind("stream", attn="pin"),
    },
}


@pytest.mark.parametrize("shape", TIERS)
@pytest.mark.parametrize("model", MODELS)
def test_a_plan_changes_neither_tokens_nor_probabilities(
    model: str, shape: str, tiny: Callable[[str], Path], asker: Asker
) -> None:
    folder = tiny(model)

    answers = asker.under(folder, plan_by(folder, TIERS[shape]))

    assert answers == asker.stock(folder)


@pytest.mark.parametrize("model", ["mixtral", "qwen3moe"])
def test_selected_experts_alone_give_the_same_tokens(
    model: str, tiny: Callable[[str], Path], asker: Asker
) -> None:
    folder = tiny(model)
    tiers = {DECODE: by_kind("stream"), PREFILL: by_kind("stream")}

    whole = asker.under(folder, plan_by(folder, tiers))
    whole_bytes = asker.stats["link_bytes"]
    # Room for fewer experts than a step of three tokens selects.
    selected = asker.under(folder, plan_by(folder, tiers, cached_experts=5))
    selected_bytes = asker.stats["link_bytes"]

    assert selected == whole == asker.stock(folder)
    assert selected_bytes < whole_bytes


def test_float32_gives_the_same_tokens(tmp_path: Path, asker: Asker) -> None:
    from integration.vllm.models import write_model

    folder = write_model("llama", tmp_path, dtype="float32")

    answers = asker.under(folder, plan_by(folder, {PREFILL: by_kind("stream")}), dtype="float32")

    assert answers == asker.stock(folder, dtype="float32")


@pytest.mark.parametrize("placement", ["stream", "cpu"])
def test_a_spoiled_host_copy_changes_the_tokens(
    placement: str, tiny: Callable[[str], Path], asker: Asker
) -> None:
    folder = tiny("llama")
    asker.start(folder, plan_by(folder, {PREFILL: by_kind("stream", ffn=placement)}))
    (spoiled,) = (shard for shard in asker.offloader.runtime.shards if shard.name == "blk.2.ffn")

    spoiled.master.zero_()

    assert asker.ask() != asker.stock(folder)


@pytest.mark.parametrize("model", ["llama", "qwen3moe"])
def test_compiled_models_stream_too(model: str, tiny: Callable[[str], Path], asker: Asker) -> None:
    folder = tiny(model)
    tiers = {DECODE: by_kind("stream"), PREFILL: by_kind("stream", attn="pin")}

    answers = asker.under(folder, plan_by(folder, tiers), enforce_eager=False)
    shards = asker.offloader.runtime.shards
    moved_bytes = asker.stats["link_bytes"]
    shards[1].master.zero_()
    spoiled_answers = asker.ask()

    assert answers == asker.stock(folder, enforce_eager=False)
    assert moved_bytes > sum(shard.bytes for shard in shards)
    assert spoiled_answers != answers
