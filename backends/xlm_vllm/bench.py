"""What a plan costs and what it hides in vLLM: decode steps of stock, resident and streamed engines."""

from __future__ import annotations

import gc
import os
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xlm_plugin.cli._streamed_step import StreamedStep
from xlm_plugin.plan.document import Plan
from xlm_plugin.plan.placed import placed
from xlm_vllm.flags import worker_class
from xlm_vllm.versions import is_cpu_build

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The link takes this many times as long as computing.
LINK_SHARES = (0.5, 1.0, 2.0)
_CONTEXT_TOKENS = 512
_ENVIRONMENT = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
_ENOUGH_BYTES = 1 << 50


@dataclass(frozen=True, slots=True)
class VllmBench:
    """``resident`` is the speed with all shards pinned over that of stock vLLM, the median of pairs.

    ``overlaps`` are decode steps with all shards streamed; their ``compute_seconds`` are those of a step
    behind a link without a limit.
    """

    emulated: bool
    stock_step_seconds: float
    resident: float
    overlaps: tuple[StreamedStep, ...]


def bench_vllm(folder: Path, *, decoded_tokens: int = 48, pairs: int = 3) -> VllmBench:
    """Measure the model in ``folder``, one engine of this process at a time."""
    os.environ.update(_ENVIRONMENT)
    engines = _Engines(str(folder), decoded_tokens)
    speeds, stock_steps = [], []
    roomy: dict[str, Any] = {"vram": _ENOUGH_BYTES}
    for _ in range(pairs):
        engines.start()
        stock_steps.append(engines.step_seconds())
        engines.start(roomy)
        speeds.append(stock_steps[-1] / engines.step_seconds())
    plan = Plan.model_validate(engines.call("xlm_plan"))
    streamed = placed(plan, {_CONTEXT_TOKENS: lambda _: "stream"}).model_dump(mode="json")
    return VllmBench(
        is_cpu_build(),
        statistics.median(stock_steps),
        statistics.median(speeds),
        tuple(_overlaps(engines, streamed)) if is_cpu_build() else (),
    )


def _overlaps(engines: _Engines, plan: dict[str, Any]) -> Iterator[StreamedStep]:
    engines.start({"plan": plan})
    compute_seconds = engines.step_seconds()
    step_bytes = engines.step_bytes()
    for share in LINK_SHARES:
        speed = step_bytes / (share * compute_seconds)
        engines.start({"plan": plan, "link_bytes_per_s": speed})
        yield StreamedStep(
            link_bytes_per_s=speed,
            link_seconds=step_bytes / speed,
            compute_seconds=compute_seconds,
            step_seconds=engines.step_seconds(),
        )


class _Engines:
    """Starts engines of one model, each after the one before has ended."""

    def __init__(self, model: str, decoded_tokens: int) -> None:
        self._model = model
        self._decoded_tokens = decoded_tokens
        self._engine: Any = None

    def start(self, xlm: dict[str, Any] | None = None) -> None:
        """Start a stock engine, or one that is asked ``xlm``."""
        from vllm import LLM

        self._engine = None
        gc.collect()
        ours: dict[str, Any] = {}
        if xlm is not None:
            ours = {
                "load_format": "xlm",
                "worker_cls": worker_class(on_cpu=is_cpu_build()),
                "additional_config": {"xlm": xlm},
            }
        self._engine = LLM(
            self._model, enforce_eager=True, max_model_len=_CONTEXT_TOKENS, max_num_seqs=1, **ours
        )
        self._generate(2)

    def step_seconds(self) -> float:
        """Return the time of one decode step."""
        first_seconds = self._generate(1)
        return (self._generate(1 + self._decoded_tokens) - first_seconds) / self._decoded_tokens

    def step_bytes(self) -> int:
        """Return what one decode step moves."""
        before = self.call("xlm_stats")["link_bytes"]
        self._generate(1)
        once_bytes = self.call("xlm_stats")["link_bytes"] - before
        self._generate(1 + self._decoded_tokens)
        moved_bytes = self.call("xlm_stats")["link_bytes"] - before - 2 * once_bytes
        return int(moved_bytes / self._decoded_tokens)

    def call(self, method: str) -> dict[str, Any]:
        """Return what the worker answers to a control method."""
        found: dict[str, Any] = self._engine.collective_rpc(method)[0]
        return found

    def _generate(self, tokens: int) -> float:
        from vllm import SamplingParams

        greedy = SamplingParams(temperature=0, max_tokens=tokens, ignore_eos=True)
        begun = time.perf_counter()
        self._engine.generate([{"prompt_token_ids": [5, 6, 7]}], greedy, use_tqdm=False)
        return time.perf_counter() - begun
