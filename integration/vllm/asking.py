"""Real vLLM engines in this process, one at a time, asked for greedy answers."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from vllm import LLM

    from xlm_plugin.plan.document import Plan
    from xlm_vllm.offloader import XlmOffloader

WORKER = "xlm_vllm.worker.XlmCpuWorker"
PROMPTS = (
    "The river rose in the night and by morning the lower fields were under water.",
    "a",
    "Nobody in the village had seen anything like it, and the old bridge, which had stood long, was gone",
)
NEW_TOKENS = 24


@dataclass(frozen=True)
class Answer:
    """The greedy tokens of one prompt, and the log-probability of each."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]


@dataclass
class Asker:
    """Starts engines. The one before is gone when the next one starts: vLLM keeps state by process."""

    _engine: LLM | None = None
    _stock: dict[tuple[object, ...], list[Answer]] = field(default_factory=dict)

    def stock(self, folder: Path, **options: Any) -> list[Answer]:
        """Return what vLLM answers without us."""
        key = (folder, *sorted(options.items()))
        if key not in self._stock:
            self._start(folder, options)
            self._stock[key] = self.ask()
        return self._stock[key]

    def start(
        self, folder: Path, plan: Plan, *, config: dict[str, Any] | None = None, **options: Any
    ) -> None:
        """Start an engine that carries out ``plan``."""
        xlm = {"plan": plan.model_dump(mode="json"), **(config or {})}
        ours = {"load_format": "xlm", "worker_cls": WORKER, "additional_config": {"xlm": xlm}}
        self._start(folder, {**ours, **options})

    def under(self, folder: Path, plan: Plan, **options: Any) -> list[Answer]:
        """Return what an engine answers that carries out ``plan``."""
        self.start(folder, plan, **options)
        return self.ask()

    def ask(self) -> list[Answer]:
        """Return the present engine's answers to the prompts."""
        from vllm import SamplingParams

        assert self._engine is not None
        greedy = SamplingParams(temperature=0, max_tokens=NEW_TOKENS, logprobs=1, ignore_eos=True)
        outputs = self._engine.generate(list(PROMPTS), greedy, use_tqdm=False)
        return [_answer(output.outputs[0]) for output in outputs]

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Return what each worker answers to a control method."""
        assert self._engine is not None
        found: list[Any] = self._engine.collective_rpc(method, args=arguments)
        return found

    @property
    def stats(self) -> dict[str, Any]:
        """What the only worker's device counts."""
        found: dict[str, Any] = self.call("xlm_stats")[0]
        return found

    @property
    def offloader(self) -> XlmOffloader:
        """The offloader of the engine in this process."""
        from vllm.model_executor.offloader.base import get_offloader

        found: XlmOffloader = get_offloader()
        return found

    def stop(self) -> None:
        """End the present engine."""
        self._engine = None
        gc.collect()

    def _start(self, folder: Path, options: dict[str, Any]) -> None:
        from vllm import LLM

        self.stop()
        usual = {"enforce_eager": True, "dtype": "bfloat16", "max_model_len": 512, "max_num_seqs": 4}
        self._engine = LLM(model=str(folder), **{**usual, **options})


def _answer(completion: Any) -> Answer:
    chosen = zip(completion.token_ids, completion.logprobs, strict=True)
    return Answer(
        tuple(completion.token_ids), tuple(candidates[token].logprob for token, candidates in chosen)
    )
