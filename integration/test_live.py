"""Budgets that change, and engines that are held, in the middle of an answer."""

from __future__ import annotations

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import httpx
import pytest

from integration.conftest import PROMPT
from integration.plans import SHAPES, plan_by
from integration.test_engine_features import PROMPTS, say
from xlm_plugin.errors import EngineError
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from integration.conftest import Runner
    from integration.test_engine_features import Said
    from xlm_llamacpp.control import DeviceControl
    from xlm_llamacpp.process import ServerProcess
    from xlm_plugin.model.graph import ModelGraph

NEW_TOKENS = 2000
CHANGES = 50
STEPS_BETWEEN = 8


def engine_of(runner: Runner, model: ModelGraph, sequences: int) -> ServerProcess:
    """Return an engine under a plan that keeps all shards on the device, with room for long answers."""
    context = PlannedContext(tokens=2304 * sequences, ubatch_tokens=64, sequences=sequences)
    plan = plan_by(model, runner.device, context, *SHAPES["all pin"])
    return replace(runner, threads=1).start(plan, model)


def least_budget(control: DeviceControl) -> int:
    """Return the budget that the device names when it refuses one that is too small."""
    with pytest.raises(EngineError) as refused:
        control.set_budget(1)
    named = re.search(r"the least that works is (\S+)\.$", refused.value.message)
    assert named
    return parse_bytes(named[1])


def wait_for_steps(control: DeviceControl, count: int) -> None:
    """Return when the engine has made ``count`` more steps."""
    start = sum(control.stats().steps.values())
    until = time.monotonic() + 60
    while sum(control.stats().steps.values()) < start + count:
        assert time.monotonic() < until, "the engine makes no steps"


@pytest.mark.parametrize("sequences", [1, 3])
def test_the_budget_falls_to_the_least_and_rises_50_times_in_an_answer(
    runner: Runner, tiny: Callable[[str], ModelGraph], sequences: int
) -> None:
    def ask(pool: ThreadPoolExecutor) -> Iterator[Said]:
        return pool.map(lambda prompt: say(engine, prompt, NEW_TOKENS, ignore_eos=True), PROMPTS[:sequences])

    with engine_of(runner, tiny("llama"), sequences) as engine, ThreadPoolExecutor() as pool:
        control = runner.backend.control(engine)
        undisturbed = list(ask(pool))
        before = control.stats()
        least = least_budget(control)
        assert least < before.device_bytes
        disturbed = ask(pool)
        for _ in range(CHANGES):
            for budget_bytes in (least, before.budget_bytes):
                control.set_budget(budget_bytes)
                wait_for_steps(control, STEPS_BETWEEN)
                counted = control.stats()
                assert sum(counted.ledger_bytes.values()) == counted.device_bytes <= budget_bytes
        assert [tokens for tokens, _ in disturbed] == [tokens for tokens, _ in undisturbed]
        # What left comes back in pieces.
        say(engine, new_tokens=64, ignore_eos=True)
        after = control.stats()
    assert after.link_bytes > before.link_bytes
    assert (after.ledger_bytes, after.device_bytes) == (before.ledger_bytes, before.device_bytes)
    assert (after.resident_shards, after.demoted_shards) == (before.resident_shards, 0)


@pytest.mark.parametrize("hold", ["pause", "park"])
def test_a_held_engine_keeps_its_streams_open_and_says_that_it_is_healthy(
    runner: Runner, tiny: Callable[[str], ModelGraph], hold: str
) -> None:
    request = {"prompt": PROMPT, "n_predict": 400, "temperature": 0, "ignore_eos": True}
    request |= {"return_tokens": True, "cache_prompt": False, "stream": True}

    def tokens(lines: Iterator[str]) -> Iterator[int]:
        for line in lines:
            if line.startswith("data:"):
                yield from json.loads(line.removeprefix("data:"))["tokens"]

    with engine_of(runner, tiny("llama"), 1) as engine:
        control = runner.backend.control(engine)
        undisturbed, _ = say(engine, new_tokens=400, ignore_eos=True)
        with httpx.stream(
            "POST", f"{engine.url}/completion", json=request, timeout=60, trust_env=False
        ) as response:
            arriving = tokens(response.iter_lines())
            heard = [next(arriving)]
            getattr(control, hold)()
            held_at = held_steps(control)
            assert httpx.get(f"{engine.url}/health", timeout=10, trust_env=False).is_success
            assert held_steps(control) == held_at
            control.wake()
            heard += arriving
    assert heard == undisturbed


def held_steps(control: DeviceControl) -> int:
    """Return the count of steps once it no longer rises: a step that had begun may end."""
    steps = -1
    while steps != (steps := sum(control.stats().steps.values())):
        time.sleep(0.1)
    return steps
