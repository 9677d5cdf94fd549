"""A plan with chosen placements, whatever a planner would think of them: for benchmarks and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.plan.document import Plan, Staging, Tier
from xlm_plugin.plan.memory import estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Placement, PlannedShard

    Place = Callable[[PlannedShard], Placement]

STRATEGY = "chosen"


def placed(plan: Plan, tiers: Mapping[int, Place], slots: int = 2) -> Plan:
    """Return ``plan`` with the shards of each tier placed by its rule, and just the budget that takes.

    ``tiers`` maps the most new tokens of a tier to its rule. Raises PlanError where the result
    contradicts itself.
    """
    chosen = plan.model_copy(
        update={
            "tiers": tuple(
                Tier(
                    new_tokens=new_tokens,
                    strategy=STRATEGY,
                    placements={shard.name: place(shard) for shard in plan.shards},
                )
                for new_tokens, place in sorted(tiers.items())
            )
        }
    )
    return sized(chosen, slots)


def sized(plan: Plan, slots: int, spare_bytes: int = 0) -> Plan:
    """Return ``plan`` with the staging and ledger that its placements take, and just that much budget.

    ``slots`` are for what streams, and ``spare_bytes`` of the budget stay free. Raises PlanError where the
    result contradicts itself.
    """
    slot_bytes = max((shard.bytes for shard in plan.shards if shard.name in plan.streamed), default=0)
    staging = Staging(slots=slots if slot_bytes else 0, slot_bytes=slot_bytes)
    ledger = plan.ledger.model_copy(
        update={
            "resident_weight_bytes": sum(s.bytes for s in plan.shards if s.name in plan.resident),
            "staging_bytes": staging.bytes,
            "expert_cache_bytes": plan.expert_cache.bytes if plan.expert_cache else 0,
        }
    )
    paid = plan.model_copy(
        update={"staging": staging, "ledger": ledger, "budget_bytes": ledger.total_bytes + spare_bytes}
    )
    return Plan.from_json(paid.to_json())


def on_host(plan: Plan, model: ModelGraph, *, layers: int = 0, kv_layers: Sequence[int] = ()) -> Plan:
    """Return ``plan`` with the first ``layers`` and the KV caches of ``kv_layers`` on the host.

    Its budget shrinks or grows by what that changes. Raises PlanError where the plan places shards of these
    layers on the device.
    """
    device_tokens = plan.host_kv_device_tokens
    before = estimate(
        model,
        plan.context,
        host_layers=plan.host_layers,
        host_kv_layers=plan.host_kv_layers,
        host_kv_device_tokens=device_tokens,
    )
    after = estimate(
        model,
        plan.context,
        host_layers=layers,
        host_kv_layers=kv_layers,
        host_kv_device_tokens=device_tokens,
    )
    counted = ("small_weight_bytes", "kv_bytes", "state_bytes", "compute_bytes")
    ledger = plan.ledger.model_copy(
        update={
            name: getattr(plan.ledger, name) + getattr(after, name) - getattr(before, name)
            for name in counted
        }
    )
    moved = plan.model_copy(
        update={
            "host_layers": layers,
            "host_kv_layers": tuple(kv_layers),
            "ledger": ledger,
            "budget_bytes": plan.budget_bytes + ledger.total_bytes - plan.ledger.total_bytes,
        }
    )
    return Plan.from_json(moved.to_json())
