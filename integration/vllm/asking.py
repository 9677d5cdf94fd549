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
            self.start_stock(folder, **options)
            self._stock[key] = self.ask()
        return self._stock[key]

    def start_stock(self, folder: Path, **options: Any) -> None:
        """Start an engine without us."""
        self._start(folder, options)

    def start(
        self, folder: Path, plan: Plan, *, config: dict[str, Any] | None = None, **options: Any
    ) -> None:
        """Start an engine that carries out ``plan``."""
        xlm = {"plan": plan.model_dump(mode="json"), **(config or {})}
        ours = {"load_format": "xlm", "worker_cls": WORKER, "additional_config": {"xlm": xlm}}
        self._start(folder, {**ours, **options})

    def start_within(self, folder: Path, vram: str, **options: Any) -> None:
        """Start an engine that makes its own plan within a budget."""
        xlm = {"vram": vram}
        ours = {"load_format": "xlm", "worker_cls": WORKER, "additional_config": {"xlm": xlm}}
        self._start(folder, {**ours, **options})

    def under(self, folder: Path, plan: Plan, **options: Any) -> list[Answer]:
        """Return what an engine answers that carries out ``plan``."""
        self.start(folder, plan, **options)
        return self.ask()

    def ask(self) -> list[Answer]:
        """Return the present engine's answers to the prompts."""
        from vllm import SamplingParams

        greedy = SamplingParams(temperature=0, max_tokens=NEW_TOKENS, logprobs=1, ignore_eos=True)
        outputs = self.engine.generate(list(PROMPTS), greedy, use_tqdm=False)
        return [_answer(output.outputs[0]) for output in outputs]

    def call(self, method: str, *arguments: Any) -> list[Any]:
        """Return what each worker answers to a control method."""
        found: list[Any] = self.engine.collective_rpc(method, args=arguments)
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

    @property
    def engine(self) -> LLM:
        """The present engine."""
        assert self._engine is not None
        return self._engine

    def sleep(self) -> None:
        """Let the engine sleep at level 1; requests under way wait."""
        self.engine.llm_engine.engine_core.sleep(1, "keep")

    def wake_up(self) -> None:
        """Wake the engine."""
        self.engine.llm_engine.engine_core.wake_up()

    def stop(self) -> None:
        """End the present engine."""
        self._engine = None
        gc.collect()

    def _start(self, folder: Path, options: dict[str, Any]) -> None:
        from vllm import LLM

        self.stop()
        usual = {"enforce_eager": True, "dtype": "bfloat16", "max_model_len": 512, "max_num_seqs": 4}
        self._engine = LLM(model=str(folder), **{**usual, **options})


class Request:
    """One greedy request that is advanced token by token, in the engine that is present at its start."""

    def __init__(self, asker: Asker, new_tokens: int) -> None:
        from vllm import SamplingParams

        self._engine = asker.engine.llm_engine
        self._tokens: tuple[int, ...] = ()
        greedy = SamplingParams(temperature=0, max_tokens=new_tokens, ignore_eos=True)
        self._engine.add_request("under way", PROMPTS[0], greedy)

    def advance(self, new_tokens: int) -> None:
        """Compute ``new_tokens`` more tokens."""
        until = len(self._tokens) + new_tokens
        while len(self._tokens) < until:
            self._step()

    def finish(self) -> tuple[int, ...]:
        """Compute what is left and return all tokens."""
        while self._engine.has_unfinished_requests():
            self._step()
        return self._tokens

    def _step(self) -> None:
        for output in self._engine.step():
            self._tokens = tuple(output.outputs[0].token_ids)


def _answer(completion: Any) -> Answer:
    chosen = zip(completion.token_ids, completion.logprobs, strict=True)
    return Answer(
        tuple(completion.token_ids), tuple(candidates[token].logprob for token, candidates in chosen)
    )
