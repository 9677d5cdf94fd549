"""Predicted against measured steps: plans of random placements, run on the real engine."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xlm_plugin.backend import LaunchOptions
from xlm_plugin.cli._launch import ready_backend
from xlm_plugin.cli._planning import PlanningOptions, plan_model
from xlm_plugin.plan.placed import placed
from xlm_plugin.plan.simulated import SimulatedPlan
from xlm_plugin.plan.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xlm_plugin.backend import Backend
    from xlm_plugin.cli._planning import Planned
    from xlm_plugin.machine.document import Device
    from xlm_plugin.plan.document import Placement, Plan, PlannedShard

_PROMPT = "The quick brown fox jumps over the lazy dog. " * 6
_NEW_TOKENS = 24
# How often a shard is pinned, streamed or run on the CPU.
_MIXTURES = ((1, 1, 1), (3, 1, 0), (1, 3, 0), (0, 1, 1), (1, 0, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1))


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """One plan's decode step: what the simulator says, and the engine's own median."""

    model: str
    link_bytes_per_s: float
    predicted_seconds: float
    measured_seconds: float

    @property
    def error(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return abs(self.predicted_seconds - self.measured_seconds) / self.measured_seconds


def compare_steps(
    models: Sequence[str], links_gb_per_s: Sequence[float], plans: int, seed: int
) -> Iterator[ComparedStep]:
    """Yield ``plans`` comparisons, taken in turn from ``models`` and links. Raises XlmError."""
    draw = random.Random(seed)
    base = {
        model: plan_model(model, PlanningOptions(vram="1024GiB", ctx=512, ubatch=64, device="emulated"))
        for model in models
    }
    backend = ready_backend(base[models[0]])
    for number in range(plans):
        planned = base[models[number % len(models)]]
        link = links_gb_per_s[number // len(models) % len(links_gb_per_s)] * 1e9
        device = replace(planned.device, link_bytes_per_s=link)
        yield _compare(backend, planned, device, _random_plan(planned.plan, draw))


def _compare(backend: Backend, planned: Planned, device: Device, plan: Plan) -> ComparedStep:
    options = LaunchOptions(device=device)
    with backend.start(backend.launch_spec(plan, planned.model, options)) as engine:
        engine.complete(_PROMPT, 4)
        answer = engine.complete(_PROMPT, _NEW_TOKENS)
    machine = replace(planned.profile.machine, device=device)
    simulated = SimulatedPlan(plan, planned.model, replace(planned.profile, machine=machine))
    object.__setattr__(
        simulated, "workload", Workload(plan.context, answer.prompt_tokens, len(answer.tokens))
    )
    return ComparedStep(
        planned.model.name,
        device.link_bytes_per_s or 0.0,
        simulated.step(1).step_seconds,
        1 / answer.decode_tokens_per_s,
    )


def _random_plan(plan: Plan, draw: random.Random) -> Plan:
    mixture = draw.choice(_MIXTURES)

    def place(_shard: PlannedShard) -> Placement:
        return draw.choices(("pin", "stream", "cpu"), mixture)[0]

    return placed(plan, {1: place, plan.context.ubatch_tokens: place}, slots=draw.randint(2, 4))
