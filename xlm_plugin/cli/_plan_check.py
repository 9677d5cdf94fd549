"""``xlm plan --check``: the two plans that are predicted to be quickest, tried on the engine."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TYPE_CHECKING

import click

from xlm_plugin.errors import DoesNotFitError, EngineError, PlanError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xlm_plugin.backend import Backend, Completion, LaunchOptions
    from xlm_plugin.cli._planning import Planned, PlanRequest
    from xlm_plugin.plan.document import Plan

TRIED = 2
PROMPT_WORDS, NEW_TOKENS = 256, 32
_SENTENCE = "The weights of a model lie in host memory and come to the device when a step needs them"


@dataclass(frozen=True, slots=True)
class Trial:
    """A plan, and what a typical answer takes under it, in seconds: predicted and as measured."""

    plan: Plan
    predicted_seconds: float
    measured_seconds: float


def candidates(request: PlanRequest, planned: Planned) -> list[Plan]:
    """Return ``planned`` and the best plans of each single strategy, quickest first, no two alike."""
    found = [planned.plan, *_of_single_strategies(request, planned.plan.budget_bytes)]
    distinct = {_layout(plan): plan for plan in reversed(found)}
    return sorted(distinct.values(), key=request.seconds)


def _of_single_strategies(request: PlanRequest, budget_bytes: int) -> Iterator[Plan]:
    if request.planning.strategy is not None:
        return
    names = {strategy.name for found in request.manager.hook.xlm_strategies() for strategy in found}
    for name in sorted(names):
        with suppress(DoesNotFitError, PlanError):
            yield request.plan(budget_bytes, name)


def _layout(plan: Plan) -> str:
    """Return what makes plans differ for an engine."""
    tiers = [(tier.new_tokens, sorted(tier.placements.items())) for tier in plan.tiers]
    return repr((tiers, plan.staging, plan.expert_cache, plan.host_layers, plan.host_kv_layers))


def tried(
    backend: Backend, request: PlanRequest, plans: Sequence[Plan], options: LaunchOptions
) -> list[Trial]:
    """Run each plan briefly and return the trials, quickest first as measured."""
    trials = []
    for number, plan in enumerate(plans, 1):
        click.echo(f"Trying plan {number} of {len(plans)} ...", err=True)
        with backend.start(backend.launch_spec(plan, request.model, options)) as engine:
            # The first answer warms the engine up.
            prompt = _prompt(plan)
            engine.complete(prompt, 1)
            completion = engine.complete(f"{NEW_TOKENS} {prompt}", NEW_TOKENS)
        trials.append(Trial(plan, request.seconds(plan), _measured_seconds(request, plan, completion)))
    return sorted(trials, key=lambda trial: trial.measured_seconds)


def _prompt(plan: Plan) -> str:
    tokens = plan.context.tokens // plan.context.sequences
    words = max(1, min(PROMPT_WORDS, (tokens - NEW_TOKENS) // 4))
    return " ".join(islice(cycle(_SENTENCE.split()), words))


def _measured_seconds(request: PlanRequest, plan: Plan, completion: Completion) -> float:
    """Return what a typical answer takes at the measured speeds."""
    from xlm_plugin.plan.workload import typical_workload

    prefill, decode = completion.prefill_tokens_per_s, completion.decode_tokens_per_s
    if prefill <= 0 or decode <= 0:
        raise EngineError("The engine does not say how fast it was: nothing was compared.")
    workload, objective = typical_workload(plan.context), request.planning.objective
    prompt_seconds = 0.0 if objective == "tps" else workload.prompt_tokens / prefill
    answer_seconds = 0.0 if objective == "ttft" else workload.answer_tokens / decode
    return prompt_seconds + answer_seconds
