"""What the device costs and what it hides: bare, resident and streamed steps of one model, side by side."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xlm_plugin.cli._paired import paired_ratio
from xlm_plugin.cli._streamed_step import StreamedStep
from xlm_plugin.plan.placed import placed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from xlm_plugin.backend import Backend, Completion, Engine, LaunchOptions, LaunchSpec
    from xlm_plugin.cli._paired import PairedRatio
    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Placement, Plan, PlannedShard

    Place = Callable[[PlannedShard], Placement]

DECODED_TOKENS = 32
PARK_TIMEOUT_SECONDS = 10.0
# Pairs go on until a ratio is known to half a percent, or until there are this many times as many.
TIGHT = 0.005
MOST_ROUNDS = 8
_WORDS = "Many people who live near the river walk along its banks in the evening and talk about the day. "


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(StreamedStep):
    """One phase at one link speed. ``compute_seconds`` is the bare device's step."""

    model: str
    phase: str


@dataclass(frozen=True, slots=True)
class DeviceBench:
    """Everything that is measured.

    ``resident_prefill`` and ``resident_decode`` are speeds with everything resident over the bare device's,
    taken in turns.

    ``park_seconds`` is from the call to the moment when no weight of ours is on the device, while idle;
    ``wake_steps`` is the first token after a wake, in steps of an engine that was never parked.
    """

    resident_prefill: PairedRatio
    resident_decode: PairedRatio
    pipeline: tuple[Pipeline, ...]
    park_seconds: float
    wake_steps: float
    tokens_identical: bool


@dataclass(frozen=True, slots=True)
class _Steps:
    prefill_seconds: float
    decode_seconds: float
    tokens: tuple[int, ...]


class DeviceBencher:
    """Runs one model under plans made from ``plan``, in which everything fits.

    Each figure takes ``rounds`` runs or more. ``progress`` is told what is measured next.
    """

    def __init__(
        self,
        backend: Backend,
        model: ModelGraph,
        plan: Plan,
        options: LaunchOptions,
        rounds: int,
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._backend = backend
        self._model = model
        self._plan = plan
        self._options = options
        self._rounds = rounds
        self._progress = progress
        # Long enough for one full prefill step.
        self._prompt = _WORDS * (plan.context.ubatch_tokens // 8)

    def run(self, links: Sequence[float]) -> DeviceBench:
        """Return the measurements at each of ``links`` (bytes/s)."""
        answers = self._side_by_side(
            "everything resident against the bare device",
            self._backend.stock_spec(self._plan, self._model, self._options),
            self._spec(self._placed(_pin)),
        )
        bare, resident = (_median_steps(of_one, self._plan) for of_one in answers)
        streaming = self._placed(_stream_ffn)
        identical = bare.tokens == resident.tokens
        pipeline: list[Pipeline] = []
        for link_bytes_per_s in links:
            spec = self._spec(streaming, link_bytes_per_s)
            (of_one,) = self._side_by_side(f"streamed at {link_bytes_per_s / 1e9:g} GB/s", spec)
            steps = _median_steps(of_one, self._plan)
            identical = identical and steps.tokens == bare.tokens
            pipeline += self._pipeline(streaming, link_bytes_per_s, bare, steps)
        park_seconds, wake_steps = self._park_and_wake(resident)
        return DeviceBench(
            resident_prefill=_speed_ratio(answers, "prefill_tokens_per_s"),
            resident_decode=_speed_ratio(answers, "decode_tokens_per_s"),
            pipeline=tuple(pipeline),
            park_seconds=park_seconds,
            wake_steps=wake_steps,
            tokens_identical=identical,
        )

    def _placed(self, place: Place) -> Plan:
        return placed(self._plan, {1: place, self._plan.context.ubatch_tokens: place}, slots=3)

    def _spec(self, plan: Plan, link_bytes_per_s: float | None = None) -> LaunchSpec:
        device: Device | None = self._options.device
        if device is not None and link_bytes_per_s is not None:
            device = replace(device, link_bytes_per_s=link_bytes_per_s)
        return self._backend.launch_spec(plan, self._model, replace(self._options, device=device))

    def _side_by_side(self, title: str, *specs: LaunchSpec) -> list[list[Completion]]:
        """Return the answers of each engine, asked in turns until their speeds compare well."""
        answers: list[list[Completion]] = [[] for _ in specs]
        with ExitStack() as running:
            self._progress(f"{title}: starting")
            engines = [running.enter_context(self._backend.start(spec)) for spec in specs]
            for engine in engines:
                self._ask(engine)
            while not self._is_enough(answers):
                self._progress(f"{title}: round {len(answers[0]) + 1}")
                for engine, of_one in zip(engines, answers, strict=True):
                    of_one.append(self._ask(engine))
        return answers

    def _is_enough(self, answers: list[list[Completion]]) -> bool:
        rounds = len(answers[0])
        if rounds < self._rounds or len(answers) == 1:
            return rounds >= self._rounds
        speeds = ("prefill_tokens_per_s", "decode_tokens_per_s")
        doubt = max(_speed_ratio(answers, speed).interval for speed in speeds)
        return doubt <= TIGHT or rounds >= MOST_ROUNDS * self._rounds

    def _ask(self, engine: Engine, new_tokens: int = DECODED_TOKENS) -> Completion:
        return engine.complete(self._prompt, new_tokens)

    def _pipeline(
        self, plan: Plan, link_bytes_per_s: float, bare: _Steps, steps: _Steps
    ) -> tuple[Pipeline, ...]:
        link_bytes = sum(shard.bytes for shard in plan.shards if shard.name in plan.streamed)
        return tuple(
            Pipeline(
                model=self._model.name,
                phase=phase,
                link_bytes_per_s=link_bytes_per_s,
                link_seconds=link_bytes / link_bytes_per_s,
                compute_seconds=compute_seconds,
                step_seconds=step_seconds,
            )
            for phase, compute_seconds, step_seconds in (
                ("prefill", bare.prefill_seconds, steps.prefill_seconds),
                ("decode", bare.decode_seconds, steps.decode_seconds),
            )
        )

    def _park_and_wake(self, resident: _Steps) -> tuple[float, float]:
        self._progress("park and wake")
        with self._backend.start(self._spec(self._placed(_pin))) as engine:
            control = self._backend.control(engine)
            self._ask(engine, 1)
            start = time.monotonic()
            control.park()
            while control.stats().resident_shards and time.monotonic() - start < PARK_TIMEOUT_SECONDS:
                time.sleep(0.001)
            park_seconds = time.monotonic() - start
            start = time.monotonic()
            control.wake()
            engine.complete("The", 1)
            return park_seconds, (time.monotonic() - start) / resident.decode_seconds


def _speed_ratio(answers: Sequence[Sequence[Completion]], speed: str) -> PairedRatio:
    pairs = zip(*answers, strict=True)
    return paired_ratio([getattr(ours, speed) / getattr(theirs, speed) for theirs, ours in pairs])


def _pin(_shard: PlannedShard) -> Placement:
    return "pin"


def _stream_ffn(shard: PlannedShard) -> Placement:
    return "stream" if shard.name.endswith(("ffn", "experts")) else "pin"


def _median_steps(answers: Sequence[Completion], plan: Plan) -> _Steps:
    steps = -(-answers[0].prompt_tokens // plan.context.ubatch_tokens)
    return _Steps(
        prefill_seconds=statistics.median(a.prompt_tokens / a.prefill_tokens_per_s / steps for a in answers),
        decode_seconds=statistics.median(1 / answer.decode_tokens_per_s for answer in answers),
        tokens=answers[0].tokens,
    )
