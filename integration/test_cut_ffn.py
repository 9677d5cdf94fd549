"""A feed-forward network whose halves lie in different places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.plans import SHAPES, plan_by
from xlm_plugin.model.cut import cut_ffn

if TYPE_CHECKING:
    from integration.conftest import Runner
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import Placement, PlannedContext


@pytest.mark.parametrize("halves", [("pin", "stream"), ("stream", "cpu"), ("cpu", "pin")])
def test_tokens_are_stocks_with_the_halves_of_an_ffn_apart(
    runner: Runner, demo: ModelGraph, context: PlannedContext, halves: tuple[Placement, Placement]
) -> None:
    cut = cut_ffn(cut_ffn(demo, 3), 4)
    by_name: dict[str, Placement] = {
        f"blk.{layer}.ffn.{half}": placement
        for layer in (3, 4)
        for half, placement in zip(("up_gate", "down"), halves, strict=True)
    }

    def place(shard: Shard) -> Placement:
        return by_name.get(shard.name, "pin")

    completion, stats = runner.under(plan_by(cut, runner.device, context, place, place), demo)
    stock = runner.stock(plan_by(demo, runner.device, context, *SHAPES["all pin"]), demo)
    assert completion.logprobs == stock.logprobs
    assert sum(stats.ledger_bytes.values()) == stats.device_bytes <= stats.budget_bytes
    streamed = [shard for shard in cut.shards if by_name.get(shard.name) == "stream"]
    assert (stats.link_bytes > stats.ledger_bytes["resident"]) == bool(streamed)
