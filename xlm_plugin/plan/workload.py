"""What a plan is to be quick at: how many steps of which size an answer takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.plan.step_costs import StepLoad

if TYPE_CHECKING:
    from xlm_plugin.plan.document import PlannedContext
    from xlm_plugin.plan.strategy import Objective

PROMPT_TOKENS = 1024
ANSWER_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Workload:
    """A prompt and its answer, in tokens; less than usual where the context is short."""

    context: PlannedContext
    prompt_tokens: int
    answer_tokens: int

    @property
    def prefill_tokens(self) -> int:
        """New tokens of the largest step."""
        return min(self.context.ubatch_tokens, self.context.tokens)

    @property
    def prefill_steps(self) -> float:
        """Steps of that size that the prompt takes."""
        return self.prompt_tokens / self.prefill_tokens

    def load(self, new_tokens: int) -> StepLoad:
        """Return a typical step of ``new_tokens``: in the middle of the answer, or of the prompt."""
        decodes = new_tokens <= self.context.sequences
        return StepLoad(
            new_tokens=new_tokens,
            cached_tokens=self.prompt_tokens + self.answer_tokens // 2
            if decodes
            else self.prompt_tokens // 2,
            sequences=new_tokens if decodes else 1,
            kv_type_k=self.context.kv_type_k,
            kv_type_v=self.context.kv_type_v,
        )

    def steps(self, objective: Objective) -> dict[int, float]:
        """Return how many steps of which number of new tokens ``objective`` waits for.

        ``batch`` answers all sequences at once.
        """
        prefill = {self.prefill_tokens: self.prefill_steps}
        if objective == "ttft":
            return prefill
        if objective == "tps":
            return {1: float(self.answer_tokens)}
        sequences = min(self.context.sequences, self.prefill_tokens) if objective == "batch" else 1
        steps = {tokens: count * sequences for tokens, count in prefill.items()}
        steps[sequences] = steps.get(sequences, 0.0) + self.answer_tokens
        return steps


def typical_workload(context: PlannedContext) -> Workload:
    """Return 1,024 tokens of prompt and 256 of answer, or four fifths and a fifth of a shorter context."""
    tokens = context.tokens // context.sequences
    prompt = max(1, min(PROMPT_TOKENS, tokens * 4 // 5))
    return Workload(context, prompt, max(1, min(ANSWER_TOKENS, tokens - prompt)))
