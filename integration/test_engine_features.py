"""What users switch on in the engine goes on under a plan that streams, and says what stock says."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from integration.conftest import PROMPT
from integration.plans import alternating, plan_by
from integration.tiny_models.lora import write_tiny_lora
from xlm_plugin.plan.document import PlannedContext

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from integration.conftest import Runner
    from xlm_llamacpp.process import ServerProcess
    from xlm_plugin.model.graph import ModelGraph

    Said = tuple[list[int], list[float]]
    Ask = Callable[[ServerProcess], Any]

CONTEXT = PlannedContext(tokens=512, ubatch_tokens=64)
SEQUENCES = 3
PROMPTS = (PROMPT, "Once upon a time there was a small robot", "Hi there")
STREAMED = alternating("stream", "pin", "cpu")
STREAMED_IN_PREFILL = alternating("pin", "stream", "stream")


def both(
    runner: Runner, model: ModelGraph, ask: Ask, *extra_arguments: str, context: PlannedContext = CONTEXT
) -> tuple[Any, Any]:
    """Return what the stock engine and one under a plan that streams answer to ``ask``."""
    runner = replace(runner, threads=1, extra_arguments=extra_arguments)
    plan = plan_by(model, runner.device, context, STREAMED, STREAMED_IN_PREFILL)
    # What an adapter or a second context adds is not in the plan.
    plan = plan.model_copy(update={"budget_bytes": 2 * plan.budget_bytes})
    with runner.start_stock(plan, model) as engine:
        stock = ask(engine)
    with runner.start(plan, model) as engine:
        return stock, ask(engine)


def post(engine: ServerProcess, path: str, **request: object) -> Any:
    """Return what ``engine`` answers."""
    response = httpx.post(f"{engine.url}{path}", json=request, timeout=120, trust_env=False)
    response.raise_for_status()
    return response.json()


def say(engine: ServerProcess, prompt: str = PROMPT, new_tokens: int = 16, **request: object) -> Said:
    """Return tokens and log-probabilities of a greedy answer."""
    answer = post(
        engine,
        "/completion",
        prompt=prompt,
        n_predict=new_tokens,
        temperature=0,
        n_probs=1,
        return_tokens=True,
        **{"cache_prompt": False, **request},
    )
    return answer["tokens"], [token["logprob"] for token in answer["completion_probabilities"]]


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_a_quantised_kv_cache(runner: Runner, tiny: Callable[[str], ModelGraph], architecture: str) -> None:
    context = CONTEXT.model_copy(update={"kv_type_k": "q8_0", "kv_type_v": "q8_0"})
    stock, planned = both(runner, tiny(architecture), say, context=context)
    assert planned == stock


@pytest.mark.parametrize("architecture", ["llama", "deepseek2"])
def test_without_flash_attention(
    runner: Runner, tiny: Callable[[str], ModelGraph], architecture: str
) -> None:
    context = CONTEXT.model_copy(update={"flash_attention": False})
    stock, planned = both(runner, tiny(architecture), say, context=context)
    assert planned == stock


@pytest.mark.parametrize("architecture", ["llama", "qwen3moe", "deepseek2"])
def test_a_lora_adapter(
    runner: Runner, tiny: Callable[[str], ModelGraph], architecture: str, tmp_path: Path
) -> None:
    adapter = tmp_path / "lora.gguf"
    write_tiny_lora(adapter, tiny(architecture))

    def with_and_without(engine: ServerProcess) -> object:
        return say(engine), say(engine, lora=[{"id": 0, "scale": 0.0}])

    stock, planned = both(runner, tiny(architecture), with_and_without, "--lora", str(adapter))
    assert planned == stock
    changed, unchanged = stock
    assert changed != unchanged, "the adapter changes nothing"


def test_two_lora_adapters(runner: Runner, tiny: Callable[[str], ModelGraph], tmp_path: Path) -> None:
    adapters = [tmp_path / "first.gguf", tmp_path / "second.gguf"]
    for seed, adapter in enumerate(adapters):
        write_tiny_lora(adapter, tiny("llama"), seed=seed)
    arguments = [argument for adapter in adapters for argument in ("--lora", str(adapter))]
    stock, planned = both(runner, tiny("llama"), say, *arguments)
    assert planned == stock


def test_embeddings(runner: Runner, tiny: Callable[[str], ModelGraph]) -> None:
    def embed(engine: ServerProcess) -> object:
        return [post(engine, "/embedding", content=prompt) for prompt in PROMPTS]

    stock, planned = both(runner, tiny("llama"), embed, "--embeddings", "--pooling", "mean")
    assert planned == stock


@pytest.mark.parametrize("architecture", ["llama", "qwen35"])
def test_a_saved_slot_goes_on_where_it_was(
    runner: Runner, tiny: Callable[[str], ModelGraph], architecture: str, tmp_path: Path
) -> None:
    def save_and_restore(engine: ServerProcess) -> object:
        said = say(engine, cache_prompt=True)
        post(engine, "/slots/0?action=save", filename="slot")
        other = say(engine, PROMPTS[1], cache_prompt=True)
        restored = post(engine, "/slots/0?action=restore", filename="slot")["n_restored"]
        return said, other, restored, say(engine, cache_prompt=True)

    stock, planned = both(runner, tiny(architecture), save_and_restore, "--slot-save-path", str(tmp_path))
    assert planned == stock
    _, _, restored, _ = planned
    assert restored > 0


def test_a_context_that_shifts(runner: Runner, tiny: Callable[[str], ModelGraph]) -> None:
    def beyond_the_context(engine: ServerProcess) -> object:
        return say(engine, new_tokens=400)

    context = CONTEXT.model_copy(update={"tokens": 256})
    stock, planned = both(runner, tiny("llama"), beyond_the_context, "--context-shift", context=context)
    assert planned == stock
    tokens, _ = planned
    assert len(tokens) == 400


@pytest.mark.parametrize("architecture", ["llama", "qwen3moe", "qwen35"])
def test_sequences_side_by_side(runner: Runner, tiny: Callable[[str], ModelGraph], architecture: str) -> None:
    # F16 weights are left out: there the stock engine's own log-probabilities depend on the batch.
    def side_by_side(engine: ServerProcess) -> object:
        with ThreadPoolExecutor(SEQUENCES) as pool:
            return list(pool.map(lambda prompt: say(engine, prompt), PROMPTS))

    context = CONTEXT.model_copy(update={"sequences": SEQUENCES, "tokens": SEQUENCES * CONTEXT.tokens})
    stock, planned = both(runner, tiny(architecture), side_by_side, context=context)
    assert planned == stock
