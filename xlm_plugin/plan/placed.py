"""A plan with chosen placements, whatever a planner would think of them: for benchmarks and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.plan.document import Plan, Staging, Tier

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    slot_bytes = max((shard.bytes for shard in plan.shards if shard.name in chosen.streamed), default=0)
    staging = Staging(slots=slots if slot_bytes else 0, slot_bytes=slot_bytes)
    resident_bytes = sum(shard.bytes for shard in plan.shards if shard.name in chosen.resident)
    ledger = plan.ledger.model_copy(
        update={"resident_weight_bytes": resident_bytes, "staging_bytes": staging.bytes}
    )
    tight = chosen.model_copy(
        update={"staging": staging, "ledger": ledger, "budget_bytes": ledger.total_bytes}
    )
    return Plan.from_json(tight.to_json())
