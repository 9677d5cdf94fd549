"""Why a plan places what where, in numbers and in words, and what more memory would buy."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from xlm_plugin.errors import DoesNotFitError
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulate import CPU, PIN, SELECT, STREAM
from xlm_plugin.plan.simulated import SimulatedPlan
from xlm_plugin.units import GIB, format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph, ShardKind
    from xlm_plugin.plan.document import Placement, Plan
    from xlm_plugin.plan.simulate import Flags, Step
    from xlm_plugin.plan.step_costs import Floats
    from xlm_plugin.plan.strategy import Objective

_KIND_NAMES: dict[ShardKind, str] = {
    "attn": "attention",
    "ffn": "FFN",
    "experts": "routed experts",
    "shared_experts": "shared experts",
    "ssm": "recurrent layers",
    "output": "output head",
}
_RESOURCE_NAMES = {"link": "the link", "device": "the accelerator", "host": "the CPU"}


@dataclass(frozen=True, slots=True)
class Phase:
    """One kind of step: where its time goes."""

    name: str
    new_tokens: int
    step: Step

    @property
    def sentence(self) -> str:
        """The step in words."""
        step = self.step
        parts = (
            (step.host_seconds, "the CPU computes"),
            (step.device_seconds, "the accelerator computes"),
            (step.crossing_seconds, "data crosses between them"),
            (step.waiting_seconds, "computing waits for copies or is slowed by them"),
        )
        spent = ", ".join(f"{milliseconds(part)} {what}" for part, what in parts if part > 0)
        busiest = step.bottleneck
        return (
            f"A step of {_tokens(self.new_tokens)} takes {milliseconds(step.step_seconds)}: {spent}. "
            f"The bottleneck is {_RESOURCE_NAMES[busiest]}, busy {step.utilisation[busiest]:.0%} of the step."
        )


@dataclass(frozen=True, slots=True)
class Group:
    """Shards of one kind that are placed alike in decode and in prefill.

    ``saved_seconds`` is what a typical answer gains by resident ones together, or would by one of the others.
    """

    kind: ShardKind
    names: tuple[str, ...]
    of_kind: int
    bytes: int
    decode: Placement
    prefill: Placement
    saved_seconds: float
    reasons: tuple[str, ...]

    @property
    def title(self) -> str:
        """What lies where."""
        count = f"{len(self.names)} of {self.of_kind}" if self.of_kind > 1 else ""
        name = kind_name(self.kind)
        who = f"{name[0].upper()}{name[1:]} {count}".rstrip()
        return f"{who}, {format_bytes(self.bytes)}: {_where(self.decode, self.prefill)}"


@dataclass(frozen=True, slots=True)
class NextBytes:
    """What ``more_bytes`` of budget would buy; speeds are those of a typical answer."""

    more_bytes: int
    resident_more: tuple[tuple[ShardKind, int], ...]
    first_token_seconds: tuple[float, float]
    tokens_per_s: tuple[float, float]

    @property
    def sentence(self) -> str:
        """The purchase in words."""
        (wait, shorter), (speed, faster) = self.first_token_seconds, self.tokens_per_s
        gains = ", ".join(
            f"{count} more of {kind_name(kind)}" for kind, count in self.resident_more if count > 0
        )
        return (
            f"{format_bytes(self.more_bytes)} more would hold {gains or 'no further shard'}: "
            f"decode {rate(speed)} to {rate(faster)} tokens/s, "
            f"first token {milliseconds(wait)} to {milliseconds(shorter)}."
        )


@dataclass(frozen=True, slots=True)
class Explanation:
    """A plan explained; ``next_bytes`` is None where everything is resident."""

    phases: tuple[Phase, ...]
    groups: tuple[Group, ...]
    next_bytes: NextBytes | None

    @property
    def next_sentence(self) -> str:
        """What more memory would buy, in words."""
        if self.next_bytes is None:
            return "Everything is resident: more memory would buy nothing."
        return self.next_bytes.sentence


def explain(
    plan: Plan,
    model: ModelGraph,
    profile: Profile,
    replan: Callable[[int], Plan],
    objective: Objective = "e2e",
) -> Explanation:
    """Explain ``plan``; ``replan`` returns the plan for another budget. Raises PlanError without a device."""
    simulated = SimulatedPlan(plan, model, profile)
    prefill = simulated.workload.prefill_tokens
    phases = tuple(
        Phase(name, tokens, simulated.step(tokens))
        for name, tokens in dict.fromkeys([("decode", 1), ("prefill", prefill)])
    )
    return Explanation(phases, tuple(_groups(simulated, objective)), _next_bytes(simulated, replan))


def kind_name(kind: ShardKind) -> str:
    """Return what people call shards of ``kind``."""
    return _KIND_NAMES.get(kind, kind)


def milliseconds(seconds: float) -> str:
    """Return a duration as people read it."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def rate(per_second: float) -> str:
    """Return a speed as people read it."""
    return f"{per_second:.0f}" if per_second >= 100 else f"{per_second:.3g}"


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count} tokens"


_PLACES: dict[Placement, str] = {"pin": "resident", "stream": "streams", "cpu": "runs on the CPU"}


def _where(decode: Placement, prefill: Placement) -> str:
    if decode == prefill:
        return _PLACES[decode]
    return f"{_PLACES[decode]} in decode, {_PLACES[prefill]} in prefill"


def _groups(simulated: SimulatedPlan, objective: Objective) -> Iterator[Group]:
    plan, shards = simulated.plan, simulated.shards
    decode, prefill = (plan.tier_for(tokens) for tokens in (1, simulated.workload.prefill_tokens))
    members: dict[tuple[ShardKind, Placement, Placement], list[int]] = {}
    for at, shard in enumerate(shards):
        placed = (decode.placements[shard.name], prefill.placements[shard.name])
        members.setdefault((shard.kind, *placed), []).append(at)
    of_kind = Counter(shard.kind for shard in shards)
    for (kind, in_decode, in_prefill), group in members.items():
        saved, reasons = (
            _why_resident(simulated, group, objective)
            if shards[group[0]].name in plan.resident
            else _why_elsewhere(simulated, group, objective)
        )
        yield Group(
            kind=kind,
            names=tuple(shards[at].name for at in group),
            of_kind=of_kind[kind],
            bytes=sum(device_bytes(shards[at]) for at in group),
            decode=in_decode,
            prefill=in_prefill,
            saved_seconds=saved,
            reasons=tuple(reasons),
        )


def _why_resident(
    simulated: SimulatedPlan, group: Sequence[int], objective: Objective
) -> tuple[float, list[str]]:
    moved = np.zeros((1, len(simulated.shards)), dtype=bool)
    moved[0, group] = True
    lost = -float(_saved_seconds(simulated, moved, objective)[0])
    them = "them" if len(group) > 1 else "it"
    if lost <= 0:
        return lost, [f"An answer would take no longer without {them} in VRAM: there is room."]
    return lost, [f"Without {them} in VRAM a typical answer would take {milliseconds(lost)} longer."]


def _why_elsewhere(
    simulated: SimulatedPlan, group: Sequence[int], objective: Objective
) -> tuple[float, list[str]]:
    plan, first = simulated.plan, group[0]
    moved = np.zeros((len(group), len(simulated.shards)), dtype=bool)
    moved[np.arange(len(group)), group] = True
    saved = float(_saved_seconds(simulated, moved, objective, pinned=True).max())
    shard_bytes = device_bytes(simulated.shards[first])
    left_bytes = plan.budget_bytes - plan.ledger.total_bytes
    who = "One of them" if len(group) > 1 else "It"
    one = "one" if len(group) > 1 else "it"
    reasons = []
    if saved <= 0:
        reasons.append(f"{who} in VRAM would save nothing.")
    else:
        only = "only " if left_bytes < shard_bytes else ""
        reasons.append(
            f"{who} in VRAM would save {milliseconds(saved)} of a typical answer, for "
            f"{format_bytes(shard_bytes)}; {only}{format_bytes(left_bytes)} of the budget are left."
        )
    for name, tokens in (("decode", 1), ("prefill", simulated.workload.prefill_tokens)):
        reasons.append(f"In {name} {_why_here(simulated, tokens, first, one)}.")
    return saved, reasons


def _why_here(simulated: SimulatedPlan, new_tokens: int, at: int, one: str) -> str:
    """Return why a shard that is not resident streams or runs on the CPU."""
    costs, place = simulated.costs(new_tokens), simulated.placements(new_tokens)[at]
    copy, host = (milliseconds(float(each[at])) for each in (costs.copy, costs.host))
    if place == CPU:
        return f"the CPU takes {host} for {one}; copying {one} would take {copy}"
    if place == SELECT:
        selected = milliseconds(float((costs.copy * costs.selected_share)[at]))
        return (
            f"copying the experts that a step selects of {one} takes {selected} at most, all of them {copy}; "
            f"the CPU would take {host}"
        )
    return f"copying {one} takes {copy}, behind other work; the CPU would take {host}"


def _saved_seconds(
    simulated: SimulatedPlan, moved: Flags, objective: Objective, *, pinned: bool = False
) -> Floats:
    """Return what a typical answer gains where the flagged shards (rows x shards) leave VRAM, or enter it."""
    plan = simulated.plan
    fits = np.array([device_bytes(shard) <= plan.staging.slot_bytes for shard in simulated.shards])
    saved = np.zeros(len(moved))
    for tokens, steps in simulated.workload.steps(objective).items():
        tier, now = plan.tier_for(tokens), simulated.placements(tokens)
        selects = np.array([plan.selects_experts(shard, tier) for shard in plan.shards])
        moving = np.where(selects, SELECT, np.where(fits, STREAM, CPU))
        places = [np.full_like(now, PIN)] if pinned else [np.full_like(now, CPU), moving]
        seconds = [
            simulated.outcome(tokens, np.where(moved, place, now).astype(np.int8)).step_seconds
            for place in places
        ]
        saved += steps * (simulated.step(tokens).step_seconds - np.minimum.reduce(seconds))
    return saved


def next_step_bytes(budget_bytes: int) -> int:
    """Return how much more memory is worth asking about: a GiB, or a power of two of a small budget."""
    return min(GIB, 1 << max(0, (budget_bytes // 4).bit_length() - 1))


def _next_bytes(simulated: SimulatedPlan, replan: Callable[[int], Plan]) -> NextBytes | None:
    plan = simulated.plan
    if plan.is_stock:
        return None
    more_bytes = next_step_bytes(plan.budget_bytes)
    try:
        roomier = replan(plan.budget_bytes + more_bytes)
    except DoesNotFitError:
        return None
    other = SimulatedPlan(roomier, simulated.model, simulated.profile)
    kinds = {shard.name: shard.kind for shard in simulated.shards}
    gained = Counter(kinds[name] for name in roomier.resident)
    gained.subtract(Counter(kinds[name] for name in plan.resident))
    (wait, speed), (shorter, faster) = _speeds(simulated), _speeds(other)
    return NextBytes(more_bytes, tuple(sorted(gained.items())), (wait, shorter), (speed, faster))


def _speeds(simulated: SimulatedPlan) -> tuple[float, float]:
    """Return seconds to the first token of a typical prompt, and tokens/s in decode."""
    workload = simulated.workload
    wait = workload.prefill_steps * simulated.step(workload.prefill_tokens).step_seconds
    return wait, 1 / simulated.step(1).step_seconds
