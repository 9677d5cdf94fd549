"""An engine without a process: its tokens follow from the prompt, its counters from the plan."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_plugin.backend import Completion, DeviceStats, LaunchSpec, Probe
from xlm_plugin.errors import EngineError
from xlm_plugin.plan.document import Plan
from xlm_plugin.testing.machines import fake_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xlm_plugin.backend import Engine, LaunchOptions
    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph

_WORDS = ("a", "cache", "holds", "layer", "of", "the", "weight", "where")
_PLAN = Path("fake.plan.json")
# Above Linux's largest process id (PID_MAX_LIMIT, 4194304): no signal can reach a real process.
_pids = itertools.count(2**22 + 1)


class FakeBackend:
    """A Backend whose engines run in this process.

    ``models`` are what ``read_model`` knows. ``problem`` is what ``probe`` reports, and why ``start``
    fails. An engine of a backend that is not ``faithful`` gives other tokens under a plan than stock.
    """

    name = "fake"

    def __init__(
        self,
        device: Device | None = None,
        models: Mapping[str, ModelGraph] | None = None,
        *,
        problem: str | None = None,
        faithful: bool = True,
    ) -> None:
        self.device = device or fake_device()
        self.models = dict(models or {})
        self.problem = problem
        self.faithful = faithful
        self.engines: list[FakeEngine] = []

    def probe(self) -> Probe:
        """Return the one device."""
        return Probe("fake engine", "1", (self.device,), self.problem)

    def prepare(self) -> Probe:
        """Return what ``probe`` returns: there is nothing to build."""
        return self.probe()

    def read_model(self, ref: str) -> ModelGraph | None:
        """Return the model named ``ref``, or None."""
        return self.models.get(ref)

    def launch_spec(self, plan: Plan, model: ModelGraph, options: LaunchOptions) -> LaunchSpec:
        """Return a start under ``plan``. Raises PlanError when it is for another model."""
        plan.check_model(model)
        return self._spec(options, {_PLAN: plan.to_json()})

    def stock_spec(
        self,
        plan: Plan,  # noqa: ARG002
        model: ModelGraph,  # noqa: ARG002
        options: LaunchOptions,
    ) -> LaunchSpec:
        """Return a start without a plan."""
        return self._spec(options, {})

    def start(self, spec: LaunchSpec) -> FakeEngine:
        """Return a running engine. Raises EngineError with ``problem`` where there is one."""
        if self.problem:
            raise EngineError(f"The fake engine cannot start: {self.problem}.")
        text = spec.files.get(_PLAN)
        engine = FakeEngine(Plan.from_json(text) if text else None, spec.url, faithful=self.faithful)
        self.engines.append(engine)
        return engine

    def control(self, engine: Engine) -> FakeControl:
        """Return the control of ``engine``. Raises EngineError for a stock one, and for another backend's."""
        for own in self.engines:
            if own is engine:
                return own.control()
        raise EngineError("That is not an engine of the fake backend.")

    def running(self) -> Sequence[int]:
        """Return the made-up process ids of engines that were not stopped."""
        return [engine.pid for engine in self.engines if engine.running]

    def _spec(self, options: LaunchOptions, files: Mapping[Path, str]) -> LaunchSpec:
        command = ("fake-engine", *options.extra_arguments)
        return LaunchSpec(command, {}, f"http://{options.host}:{options.port}", files)


class FakeEngine:
    """An engine that answers at once. ``plan`` is None for a stock one; nothing listens at ``url``."""

    def __init__(self, plan: Plan | None, url: str, *, faithful: bool = True) -> None:
        self.plan = plan
        self.pid = next(_pids)
        self.url = url
        self.running = True
        self._faithful = faithful
        self._control = FakeControl(plan) if plan else None

    def __enter__(self) -> FakeEngine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def complete(
        self,
        prompt: str,
        new_tokens: int,
        *,
        chat: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Completion:
        """Return a continuation that follows from ``prompt``; each word of a prompt is a token.

        Raises EngineError when the engine is stopped, paused or parked.
        """
        if not self.running:
            raise EngineError("The fake engine is not running.")
        prompt_tokens = len(prompt.split())
        if self._control:
            self._control.count_steps(prompt_tokens, new_tokens)
        seed = f"{prompt}|{chat}|{self._faithful or self.plan is None}"
        tokens = tuple(_token(seed, position) for position in range(new_tokens))
        words = [f" {_WORDS[token]}" for token in tokens]
        if on_text:
            for word in words:
                on_text(word)
        return Completion(
            text="".join(words),
            tokens=tokens,
            logprobs=tuple(-(token + 1) / 10 for token in tokens),
            prompt_tokens=prompt_tokens,
            prefill_tokens_per_s=1000.0,
            decode_tokens_per_s=100.0,
        )

    def control(self) -> FakeControl:
        """Return the control. Raises EngineError for a stock engine."""
        if self._control is None:
            raise EngineError("A stock engine has no control.")
        return self._control

    def wait(self) -> int:
        """Stop, as a process that ends by itself, and return 0."""
        self.stop()
        return 0

    def stop(self) -> None:
        """End the engine."""
        self.running = False


class FakeControl:
    """Counts what a device that follows ``plan`` would count, over a link of 10**9 bytes/s."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._budget_bytes = plan.budget_bytes
        self._state = "running"
        self._link_bytes = 0
        self._steps: Counter[int] = Counter({tier.new_tokens: 0 for tier in plan.tiers})

    def stats(self) -> DeviceStats:
        """Return the counters; shards that do not fit the budget are demoted from the last one on."""
        resident = self._resident()
        ledger_bytes = self._fixed_ledger() | {"resident": sum(resident.values())}
        return DeviceStats(
            budget_bytes=self._budget_bytes,
            ledger_bytes=ledger_bytes,
            device_bytes=sum(ledger_bytes.values()),
            link_bytes=self._link_bytes,
            link_seconds=self._link_bytes / 1e9,
            steps=dict(self._steps),
            resident_shards=len(resident),
            demoted_shards=len(self._plan.resident) - len(resident),
            prefetch_hits=0,
            prefetch_waits=0,
            wait_seconds=0.0,
            state=self._state,
        )

    def set_budget(self, budget_bytes: int) -> DeviceStats:
        """Take another budget. Raises EngineError where it does not hold what is not a weight."""
        floor_bytes = sum(self._fixed_ledger().values())
        if budget_bytes < floor_bytes:
            raise EngineError(f"The fake engine cannot do with less than {floor_bytes} bytes.")
        self._budget_bytes = budget_bytes
        return self.stats()

    def pause(self) -> None:
        """Refuse completions until ``resume``."""
        self._state = "paused"

    def resume(self) -> None:
        """Take completions again."""
        self._state = "running"

    def park(self) -> None:
        """Give up resident weights and refuse completions until ``wake``."""
        self._state = "parked"

    def wake(self) -> None:
        """Have resident weights again, and take completions."""
        self._state = "running"

    def count_steps(self, prompt_tokens: int, new_tokens: int) -> None:
        """Count the steps of one completion. Raises EngineError unless the engine is running."""
        if self._state != "running":
            raise EngineError(f"The fake engine is {self._state}.")
        ubatch_tokens = self._plan.context.ubatch_tokens
        for start in range(0, prompt_tokens, ubatch_tokens):
            self._count_step(min(ubatch_tokens, prompt_tokens - start))
        for _ in range(new_tokens - 1):
            self._count_step(1)

    def _count_step(self, new_tokens: int) -> None:
        tier = self._plan.tier_for(new_tokens)
        resident = self._resident()
        self._steps[tier.new_tokens] += 1
        self._link_bytes += sum(
            shard.bytes
            for shard in self._plan.shards
            if tier.placements[shard.name] != "cpu" and shard.name not in resident
        )

    def _resident(self) -> dict[str, int]:
        left_bytes = self._budget_bytes - sum(self._fixed_ledger().values())
        resident = {}
        for shard in self._plan.shards:
            if shard.name in self._plan.resident and self._state != "parked" and shard.bytes <= left_bytes:
                resident[shard.name] = shard.bytes
                left_bytes -= shard.bytes
        return resident

    def _fixed_ledger(self) -> dict[str, int]:
        ledger = self._plan.ledger
        return {
            "weights": ledger.small_weight_bytes,
            "kv_and_compute": ledger.kv_bytes + ledger.state_bytes + ledger.compute_bytes,
            "staging": ledger.staging_bytes,
        }


def _token(seed: str, position: int) -> int:
    return hashlib.sha256(f"{seed}|{position}".encode()).digest()[0] % len(_WORDS)
