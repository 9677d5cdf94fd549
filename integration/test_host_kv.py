"""KV caches of some layers in host memory, by the engine's patch, and whole layers there without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from integration.conftest import PROMPT
from integration.plans import SHAPES, plan_by
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.placed import on_host

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.conftest import Runner
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import Placement

_LONG_TRAINED = ("--override-kv", "llama.context_length=int:32768")
CONTEXTS = {
    "flash attention": PlannedContext(tokens=512, ubatch_tokens=64),
    "no flash attention": PlannedContext(tokens=512, ubatch_tokens=64, flash_attention=False),
    "quantised": PlannedContext(tokens=512, ubatch_tokens=64, kv_type_k="q8_0", kv_type_v="q8_0"),
    "two sequences": PlannedContext(tokens=1024, ubatch_tokens=64, sequences=2),
}


def every_second_layer(model: ModelGraph) -> tuple[int, ...]:
    return tuple(range(1, model.shape.layers, 2))


@pytest.mark.parametrize("layout", CONTEXTS)
def test_tokens_are_stocks_with_the_kv_of_every_second_layer_in_host_memory(
    runner: Runner, model: ModelGraph, layout: str
) -> None:
    pinned = plan_by(model, runner.device, CONTEXTS[layout], *SHAPES["all pin"])
    plan = on_host(pinned, model, kv_layers=every_second_layer(model))
    completion, stats = runner.under(plan, model)
    stock = runner.stock(pinned, model)
    assert completion.tokens == stock.tokens
    assert completion.logprobs == stock.logprobs
    assert sum(stats.ledger_bytes.values()) == stats.device_bytes <= plan.budget_bytes


def test_attention_in_host_memory_alone_says_the_same_with_smaller_buffers(
    runner: Runner, demo: ModelGraph
) -> None:
    pinned = plan_by(demo, runner.device, CONTEXTS["flash attention"], *SHAPES["all pin"])
    never_copied = pinned.model_copy(update={"host_kv_device_tokens": 1000})
    plan = on_host(never_copied, demo, kv_layers=every_second_layer(demo))
    completion, stats = runner.under(plan, demo)
    assert completion.logprobs == runner.stock(pinned, demo).logprobs
    assert stats.device_bytes <= plan.budget_bytes


def test_whole_host_layers_say_the_same(runner: Runner, model: ModelGraph) -> None:
    layers = model.shape.layers // 2

    def place(shard: Shard) -> Placement:
        return "cpu" if shard.layer is not None and shard.layer < layers else "pin"

    split = plan_by(model, runner.device, CONTEXTS["flash attention"], place, place)
    plan = on_host(split, model, layers=layers)
    completion, stats = runner.under(plan, model)
    assert completion.logprobs == runner.stock(plan, model).logprobs
    assert sum(stats.ledger_bytes.values()) == stats.device_bytes <= plan.budget_bytes
    assert plan.budget_bytes < split.budget_bytes


def test_a_long_context_stays_within_its_budget_and_says_the_same(
    runner: Runner, tiny: Callable[[str], ModelGraph]
) -> None:
    model = tiny("llama")
    long = replace(runner, prompt=PROMPT * 260, new_tokens=16, extra_arguments=_LONG_TRAINED)
    context = PlannedContext(tokens=16 * 1024, ubatch_tokens=512)
    pinned = plan_by(model, runner.device, context, *SHAPES["all pin"])
    plan = on_host(pinned, model, kv_layers=every_second_layer(model))
    with long.start(plan, model) as engine:
        completion, stats = long.ask(engine), long.backend.control(engine).stats()
    assert completion.prompt_tokens > 12 * 1024
    assert completion.logprobs == long.stock(pinned, model).logprobs
    assert sum(stats.ledger_bytes.values()) == stats.device_bytes <= plan.budget_bytes
    # Two of the five caches left; a large step copies back one at a time.
    assert plan.budget_bytes == pinned.budget_bytes - pinned.ledger.kv_bytes // model.shape.layers
