"""The first planner. What the engine needs comes first, then residents, then a strategy per tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_hooks.planner.fixed import fitting_ledger
from xlm_hooks.planner.residents import MIN_SLOTS, Stage, by_worth, choose_residents
from xlm_hooks.planner.strategies import Stock
from xlm_hooks.planner.tiers import TierFiller, merged, tier_edges, weighed_edges
from xlm_plugin.errors import DoesNotFitError, PlanError
from xlm_plugin.machine.rates import described_rates
from xlm_plugin.plan.document import Plan, PlannedModel, PlannedShard, Staging
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from xlm_hooks.planner.residents import Residents
    from xlm_plugin.errors import XlmError
    from xlm_plugin.machine.document import Device
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import PlannedContext, Tier
    from xlm_plugin.plan.strategy import Objective, Strategy

_NOTHING: frozenset[str] = frozenset()


def first_plan(
    model: ModelGraph,
    profile: Profile,
    context: PlannedContext,
    budget_bytes: int,
    objective: Objective,
    strategies: Sequence[Strategy],
) -> Plan:
    """Return a plan by rules of thumb.

    Raises DoesNotFitError where the context alone, or the staging that ``strategies`` insist on,
    exceeds ``budget_bytes``, and PlanError where they cannot place the model at all.
    """
    device = profile.machine.device
    if device is None:
        raise PlanError("There is no device to plan for.", "Plan for an emulated one with --device emulated.")
    ledger = fitting_ledger(model, context, device, budget_bytes)
    shards = _placeable(model)
    if not shards:
        raise PlanError(f"The model '{model.name}' has no weights that could be placed.")
    rates = profile.rates or described_rates(profile.machine.host, device)
    filler = TierFiller(shards, (Stock(), *strategies), rates)
    free_bytes = budget_bytes - ledger.total_bytes
    edges = tier_edges(shards, context)
    stages = _stages(filler, edges, weighed_edges(edges, context, objective), device)
    residents = choose_residents(stages, free_bytes)
    tiers = _tiers(filler, edges, residents)
    staging = _staging(filler, tiers, free_bytes - residents.bytes)
    return Plan(
        model=PlannedModel(
            name=model.name,
            architecture=model.architecture,
            fingerprint=model.fingerprint,
            weight_bytes=model.weight_bytes,
        ),
        device=device.name,
        emulated=device.emulated,
        context=context,
        budget_bytes=budget_bytes,
        ledger=ledger.model_copy(
            update={"resident_weight_bytes": residents.bytes, "staging_bytes": staging.bytes}
        ),
        staging=staging,
        shards=tuple(_planned(shard) for shard in shards),
        tiers=tiers,
        notes=_notes(model, profile, device, tiers, residents),
    )


def _placeable(model: ModelGraph) -> tuple[Shard, ...]:
    # A vision tower is the engine's own to place: it counts as the projector.
    return tuple(s for s in model.shards if s.home == "device" and s.kind != "vision" and s.movable_bytes)


def _stages(
    filler: TierFiller, edges: Sequence[int], weighed: Sequence[int], device: Device
) -> tuple[Stage, ...]:
    """Return what becomes resident in which order.

    Staging is sized here, from what would stream if nothing were resident, so that it does not depend
    on the budget. The output head does not count, it is large and resident early, unless the
    strategies insist on streaming all. On unified memory routed experts are not split: both
    halves would read the same memory (ollama and llama.cpp users measure half the speed).
    """
    ranked = by_worth(filler.shards)
    if any(filler.best(edge, _NOTHING, slot_bytes=0) is None for edge in edges):
        return (Stage(ranked, _slot_bytes(_streamed(filler, edges))),)
    streamed = _streamed(filler, weighed)
    dense = tuple(shard for shard in ranked if shard.kind != "experts")
    experts = tuple(shard for shard in ranked if shard.kind == "experts")
    return (
        Stage(dense, _slot_bytes(s for s in streamed if s.kind not in ("experts", "output"))),
        Stage(experts, _slot_bytes(s for s in streamed if s.kind == "experts"), divisible=not device.unified),
    )


def _streamed(filler: TierFiller, edges: Iterable[int]) -> list[Shard]:
    tiers = (filler.best(edge, _NOTHING) for edge in edges)
    return [shard for tier in tiers if tier for shard in filler.streamed(tier)]


def _slot_bytes(shards: Iterable[Shard]) -> int:
    return max(map(device_bytes, shards), default=0)


def _tiers(filler: TierFiller, edges: Iterable[int], residents: Residents) -> tuple[Tier, ...]:
    tiers = []
    for edge in edges:
        tier = filler.best(edge, residents.names, residents.slot_bytes)
        if tier is None:
            raise _not_placed(filler, residents)
        tiers.append(tier)
    return merged(tiers)


def _not_placed(filler: TierFiller, residents: Residents) -> XlmError:
    names = ", ".join(strategy.name for strategy in filler.strategies if strategy.name != "stock")
    if not residents.missing_bytes:
        return PlanError(f"No strategy can place this model (tried: {names or 'none'}).")
    return DoesNotFitError(
        f"Streaming needs {format_bytes(residents.missing_bytes)} more than the budget leaves beside the "
        f"context, and no other way was left to try than {names}.",
        "Allow another strategy, give a larger budget or take a smaller context.",
        missing_bytes=residents.missing_bytes,
    )


def _staging(filler: TierFiller, tiers: Sequence[Tier], free_bytes: int) -> Staging:
    """Return two slots, or three where more shards stream and ``free_bytes`` allow it."""
    streamed = [filler.streamed(tier) for tier in tiers]
    slot_bytes = max(map(_slot_bytes, streamed))
    if not slot_bytes:
        return Staging(slots=0, slot_bytes=0)
    spare = max(map(len, streamed)) > MIN_SLOTS and free_bytes >= (MIN_SLOTS + 1) * slot_bytes
    return Staging(slots=MIN_SLOTS + spare, slot_bytes=slot_bytes)


def _planned(shard: Shard) -> PlannedShard:
    names = tuple(tensor.name for tensor in shard.tensors if tensor.movable)
    return PlannedShard(name=shard.name, bytes=device_bytes(shard), tensors=names)


def _notes(
    model: ModelGraph, profile: Profile, device: Device, tiers: Sequence[Tier], residents: Residents
) -> tuple[str, ...]:
    notes = []
    if all(tier.strategy == "stock" for tier in tiers):
        notes.append("Everything fits: xlm steps aside and the engine runs as it would without it.")
    elif residents.missing_bytes:
        notes.append(
            f"With {format_bytes(residents.missing_bytes)} more, shards that are not resident could stream; "
            "until then they run on the CPU."
        )
    notes.append(
        f"This is for a described machine, {device.name} ({device.description}), with published rates."
        if profile.rates
        else "Step times are predicted by rules of thumb: nothing was measured on this machine."
    )
    if device.emulated:
        notes.append(f"{device.name} is emulated: it computes on the CPU, behind a link of a set speed.")
    if model.generic:
        notes.append(f"The architecture '{model.architecture}' is unknown: its sizes follow a generic rule.")
    return tuple(notes)
