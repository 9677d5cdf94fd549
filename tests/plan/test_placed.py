"""Plans with chosen placements."""

from __future__ import annotations

from xlm_plugin.plan.placed import placed
from xlm_plugin.testing import tiny_model, tiny_plan


def test_every_tier_follows_its_rule() -> None:
    plan = placed(tiny_plan(tiny_model()), {1: lambda _: "cpu", 64: lambda _: "stream"})
    assert [tier.new_tokens for tier in plan.tiers] == [1, 64]
    assert set(plan.tier_for(1).placements.values()) == {"cpu"}
    assert set(plan.tier_for(64).placements.values()) == {"stream"}


def test_the_budget_is_just_what_the_placements_take() -> None:
    plan = placed(tiny_plan(tiny_model()), {64: lambda _: "stream"}, slots=3)
    assert plan.ledger.resident_weight_bytes == 0
    assert plan.staging.bytes == 3 * max(shard.bytes for shard in plan.shards)
    assert plan.budget_bytes == plan.ledger.total_bytes


def test_there_is_no_staging_where_nothing_streams() -> None:
    plan = placed(tiny_plan(tiny_model()), {64: lambda _: "pin"})
    assert plan.staging.bytes == 0
    assert plan.ledger.resident_weight_bytes == sum(shard.bytes for shard in plan.shards)
