"""Plans with chosen placements, whatever a planner would think of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.make import make_plan
from xlm_plugin.plan.placed import placed
from xlm_plugin.plan.target import describe_machine
from xlm_plugin.plugins import get_plugin_manager
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import Placement, Plan, PlannedContext, PlannedShard

    Place = Callable[[Shard], Placement]

DECODE, PREFILL = 1, 512


def plan_by(
    model: ModelGraph, device: Device, context: PlannedContext, decode: Place, prefill: Place
) -> Plan:
    """Return the plan that places each shard by ``decode`` and ``prefill``, with just the budget it takes."""
    manager = get_plugin_manager()
    machine = replace(describe_machine(manager), device=device)
    roomy = make_plan(manager, model, Profile(machine), context, 1024 * GIB)
    shards = {shard.name: shard for shard in model.shards}

    def by_name(place: Place) -> Callable[[PlannedShard], Placement]:
        return lambda planned: place(shards[planned.name])

    return placed(roomy, {DECODE: by_name(decode), PREFILL: by_name(prefill)})


def by_kind(rest: Placement, **placements: Placement) -> Place:
    """Return the rule that places shards by kind, and the ``rest`` alike."""
    return lambda shard: placements.get(shard.kind, rest)


def alternating(*placements: Placement) -> Place:
    """Return the rule that gives the layers one placement after the other."""
    return lambda shard: placements[(shard.layer or 0) % len(placements)]


SHAPES: dict[str, tuple[Place, Place]] = {
    "all pin": (by_kind("pin"), by_kind("pin")),
    "all stream": (by_kind("stream"), by_kind("stream")),
    "all cpu": (by_kind("cpu"), by_kind("cpu")),
    "mixed": (
        by_kind("pin", ffn="stream", experts="stream", output="cpu"),
        by_kind("pin", ffn="stream", experts="stream", output="cpu"),
    ),
    "layers in turn": (alternating("pin", "stream", "cpu"), alternating("pin", "stream", "cpu")),
    "another plan for prefill": (
        by_kind("pin", ffn="cpu", experts="cpu", output="cpu"),
        by_kind("pin", ffn="stream", experts="stream", output="stream"),
    ),
    "pinned and streamed by turns": (alternating("pin", "stream"), alternating("stream", "pin")),
    "resident only for prefill": (alternating("stream", "cpu"), alternating("pin", "stream")),
}
