"""Plans with chosen placements."""

from __future__ import annotations

import pytest

from xlm_plugin.errors import PlanError
from xlm_plugin.plan.placed import on_host, placed
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


def test_kv_caches_on_the_host_leave_the_budget() -> None:
    model = tiny_model()
    plan = placed(tiny_plan(model), {64: lambda _: "pin"})
    moved = on_host(plan, model, kv_layers=(1,))
    assert moved.host_kv_layers == (1,)
    assert moved.ledger.kv_bytes == plan.ledger.kv_bytes // 2
    assert moved.budget_bytes == moved.ledger.total_bytes
    assert on_host(moved, model) == plan


def test_host_layers_cannot_be_pinned() -> None:
    model = tiny_model()
    with pytest.raises(PlanError, match="of a host layer as pin"):
        on_host(placed(tiny_plan(model), {64: lambda _: "pin"}), model, layers=1)
