"""Whatever a plan says, whatever the budget becomes: the engine says what it says without one.

Every model meets a few random plans, and with ``--full`` more than 200 in all.
"""

from __future__ import annotations

import os
import random
import re
import signal
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from integration.conftest import PROMPT
from integration.random_plans import RandomPlans
from integration.tiny_models import ARCHITECTURES
from xlm_plugin.errors import EngineError
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from integration.conftest import Runner
    from xlm_llamacpp.control import DeviceControl
    from xlm_llamacpp.process import ServerProcess
    from xlm_plugin.model.graph import ModelGraph

    Said = tuple[tuple[int, ...], tuple[float, ...]]

PLANS, PLANS_IN_FULL = 3, 23
# About 50, 10 and 2 tokens: each step size meets another tier.
PROMPTS = (PROMPT, "Once upon a time there was a small robot", "Hi there")
NEW_TOKENS = 24
CONTEXT = PlannedContext(tokens=512, ubatch_tokens=64)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        count = PLANS_IN_FULL if metafunc.config.getoption("full") else PLANS
        metafunc.parametrize("architecture", ARCHITECTURES, scope="module")
        metafunc.parametrize("seed", range(count))


@pytest.fixture(scope="module")
def one_thread(runner: Runner) -> Runner:
    fast_link = replace(runner.device, link_bytes_per_s=64e9)
    return replace(runner, device=fast_link, threads=1)


@pytest.fixture(scope="module")
def plans(one_thread: Runner, tiny: Callable[[str], ModelGraph]) -> Callable[[str], RandomPlans]:
    @cache
    def of(architecture: str) -> RandomPlans:
        return RandomPlans(tiny(architecture), one_thread.device, CONTEXT)

    return of


@pytest.fixture(scope="module")
def stock(
    one_thread: Runner, tiny: Callable[[str], ModelGraph], plans: Callable[[str], RandomPlans]
) -> Callable[[str], dict[str, Said]]:
    """Return what the stock engine says to each prompt."""

    @cache
    def ask(architecture: str) -> dict[str, Said]:
        with one_thread.start_stock(plans(architecture).make(0), tiny(architecture)) as engine:
            said = [{prompt: say(engine, prompt) for prompt in PROMPTS} for _ in range(2)]
        assert said[0] == said[1], "the stock engine itself is not deterministic here"
        return said[0]

    return ask


def test_a_random_plan_under_a_changing_budget_says_what_stock_says(
    one_thread: Runner,
    tiny: Callable[[str], ModelGraph],
    plans: Callable[[str], RandomPlans],
    stock: Callable[[str], dict[str, Said]],
    architecture: str,
    seed: int,
) -> None:
    plan = plans(architecture).make(seed)
    draw = random.Random(seed)
    with one_thread.start(plan, tiny(architecture)) as engine:
        control = one_thread.backend.control(engine)
        for prompt in draw.sample(PROMPTS, len(PROMPTS)):
            assert say(engine, prompt) == stock(architecture)[prompt]
            stats = control.stats()
            assert sum(stats.ledger_bytes.values()) == stats.device_bytes <= stats.budget_bytes
            least_bytes = least_budget_bytes(control)
            share = draw.choice((0.0, 0.0, 0.2, 0.5, 1.0))
            control.set_budget(least_bytes + int(share * max(0, plan.budget_bytes - least_bytes)))
        os.kill(engine.pid, signal.SIGTERM)
        assert engine.wait() == 0


def say(engine: ServerProcess, prompt: str) -> Said:
    """Return the tokens that ``engine`` adds to ``prompt``, and their log-probabilities."""
    completion = engine.complete(prompt, NEW_TOKENS)
    return completion.tokens, completion.logprobs


def least_budget_bytes(control: DeviceControl) -> int:
    """Return the smallest budget that the device accepts now."""
    with pytest.raises(EngineError, match="too small") as caught:
        control.set_budget(1)
    found = re.search(r"the least that works is (\S+)\.$", caught.value.message)
    assert found
    return parse_bytes(found[1])
