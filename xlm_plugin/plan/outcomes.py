"""What runs measured beside what was predicted for them, kept to be shown with later plans.

Predictions are not corrected by it: another prompt or budget may err another way.
"""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from xlm_plugin.cache import cache_root
from xlm_plugin.errors import XlmError
from xlm_plugin.plan.step_costs import StepLoad
from xlm_plugin.text_files import read_text, write_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from xlm_plugin.backend import Completion
    from xlm_plugin.plan.document import Plan
    from xlm_plugin.plan.simulated import SimulatedPlan

MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """Steps of one tier in one run; speeds are tokens/s."""

    date: str
    model: str
    fingerprint: str
    device: str
    budget_bytes: int
    context_tokens: int
    threads: int
    tier: int
    phase: str
    predicted_tokens_per_s: float
    measured_tokens_per_s: float

    @property
    def ratio(self) -> float:
        """Measured speed as a share of the predicted one."""
        return self.measured_tokens_per_s / self.predicted_tokens_per_s

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        return (
            f"{self.phase}: {self.measured_tokens_per_s:.1f} tokens/s, "
            f"{self.predicted_tokens_per_s:.1f} were predicted ({self.ratio:.0%})"
        )


def outcomes_of(simulated: SimulatedPlan, completion: Completion, threads: int) -> tuple[Outcome, ...]:
    """Return what ``completion`` measured of prefill and decode, each beside its prediction.

    The predictions are for its own prompt and answer, not for typical ones.
    """
    plan, prompt = simulated.plan, completion.prompt_tokens
    answer = len(completion.tokens)
    measured = (
        ("prefill", min(prompt, plan.context.ubatch_tokens), prompt, completion.prefill_tokens_per_s),
        ("decode", 1, 2 * prompt + answer, completion.decode_tokens_per_s),
    )
    today = datetime.datetime.now(tz=datetime.timezone.utc).date().isoformat()
    return tuple(
        Outcome(
            date=today,
            model=plan.model.name,
            fingerprint=plan.model.fingerprint,
            device=plan.device,
            budget_bytes=plan.budget_bytes,
            context_tokens=plan.context.tokens,
            threads=threads,
            tier=plan.tier_for(tokens).new_tokens,
            phase=phase,
            predicted_tokens_per_s=tokens
            / simulated.step_of(_load(plan, tokens, max(0, seen - tokens) // 2)).step_seconds,
            measured_tokens_per_s=speed,
        )
        for phase, tokens, seen, speed in measured
        if tokens > 0 and speed > 0
    )


def _load(plan: Plan, new_tokens: int, cached_tokens: int) -> StepLoad:
    context = plan.context
    return StepLoad(new_tokens, cached_tokens, 1, context.kv_type_k, context.kv_type_v)


def remember(outcomes: Sequence[Outcome]) -> None:
    """Keep ``outcomes``, and of all that are kept the last ones. Raises XlmError where that fails."""
    kept = [*_all(), *outcomes][-MOST_KEPT:]
    path = _path()
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "".join(json.dumps(asdict(each)) + "\n" for each in kept), "outcomes", XlmError)


def last_outcomes(plan: Plan) -> tuple[Outcome, ...]:
    """Return the last outcome of each phase with the model and device of ``plan``."""
    last: dict[str, Outcome] = {}
    for each in _all():
        if (each.fingerprint, each.device) == (plan.model.fingerprint, plan.device):
            last[each.phase] = each
    return tuple(last.values())


def _all() -> list[Outcome]:
    path = _path()
    if not path.exists():
        return []
    try:
        return [Outcome(**json.loads(line)) for line in read_text(path, "outcomes", XlmError).splitlines()]
    # A file that something else has written to is begun anew.
    except (ValueError, TypeError):
        return []


def _path() -> Path:
    return cache_root() / "outcomes.jsonl"
