"""Token tiers: where they end and which strategy fills them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from xlm_hooks.planner.strategies import Dynamic, GpuOnly, Static
from xlm_hooks.planner.tiers import TierFiller, merged, tier_edges, weighed_edges
from xlm_plugin.errors import PluginError
from xlm_plugin.machine.rates import described_rates
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.testing import fake_device, fake_host, tiny_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.strategy import Strategy

CONTEXT = PlannedContext(tokens=4096, ubatch_tokens=512)
NOTHING: frozenset[str] = frozenset()


def placed(model: Any) -> tuple[Shard, ...]:
    return tuple(shard for shard in model.shards if shard.home == "device")


DENSE = placed(tiny_model())
MOE = placed(tiny_model(experts=32, experts_used=4))


def filler(*strategies: Strategy, shards: tuple[Shard, ...] = DENSE) -> TierFiller:
    return TierFiller(shards, strategies, described_rates(fake_host(), fake_device()))


def test_tiers_cover_decode_small_batches_and_prefill() -> None:
    assert tier_edges(DENSE, CONTEXT) == (1, 4, 16, 64, 512)


def test_parallel_sequences_have_a_tier_of_their_own() -> None:
    assert tier_edges(DENSE, CONTEXT.model_copy(update={"sequences": 3})) == (1, 3, 4, 16, 64, 512)


def test_no_tier_is_larger_than_a_step_can_be() -> None:
    assert tier_edges(DENSE, PlannedContext(tokens=4096, ubatch_tokens=8)) == (1, 4, 8)
    assert tier_edges(DENSE, PlannedContext(tokens=1)) == (1,)


def test_c45_a_tier_ends_where_experts_may_begin_to_stream() -> None:
    assert tier_edges(MOE, CONTEXT) == (1, 4, 16, 64, 255, 512)


@pytest.mark.parametrize(
    ("objective", "weighed"),
    [("ttft", (512,)), ("tps", (1, 2)), ("e2e", (1, 2, 16, 512)), ("batch", (1, 2, 16, 512))],
)
def test_the_objective_says_which_tiers_staging_is_for(objective: Any, weighed: tuple[int, ...]) -> None:
    context = CONTEXT.model_copy(update={"sequences": 2})
    assert weighed_edges((1, 2, 16, 512), context, objective) == weighed


def test_the_shortest_predicted_step_wins() -> None:
    candidates = filler(Static(), GpuOnly(), Dynamic())
    tier = candidates.best(512, NOTHING)
    assert tier is not None
    alone = [filler(strategy).best(512, NOTHING) for strategy in candidates.strategies]
    seconds = [one.prediction.step_seconds for one in alone if one and one.prediction]
    assert tier.prediction
    assert tier.prediction.step_seconds == min(seconds)


def test_of_steps_about_alike_the_earlier_strategy_wins() -> None:
    rates = described_rates(fake_host(), fake_device(emulated=True))
    resident = frozenset(shard.name for shard in DENSE[1:])
    best = [
        TierFiller(DENSE, order, rates).best(1, resident)
        for order in ((Static(), GpuOnly()), (GpuOnly(), Static()))
    ]
    assert [tier.strategy for tier in best if tier] == ["static", "gpu_only"]


def test_a_tier_predicts_the_bytes_that_it_streams() -> None:
    streaming = filler(GpuOnly())
    tier = streaming.best(1, frozenset({"output"}))
    assert tier is not None
    assert tier.prediction
    assert tier.prediction.link_bytes == sum(s.movable_bytes for s in DENSE if s.name != "output")
    assert [shard.name for shard in streaming.streamed(tier)] == [s.name for s in DENSE if s.name != "output"]


def test_no_strategy_that_applies_is_no_tier() -> None:
    assert filler(GpuOnly()).best(1, NOTHING, slot_bytes=0) is None
    assert filler().best(1, NOTHING) is None


def test_c45_copying_experts_for_a_short_prompt_is_the_last_choice() -> None:
    short = filler(GpuOnly(), Static(), shards=MOE).best(255, NOTHING)
    long = filler(GpuOnly(), Static(), shards=MOE).best(256, NOTHING)
    forced = filler(GpuOnly(), shards=MOE).best(255, NOTHING)
    assert [tier.strategy for tier in (short, long, forced) if tier] == ["static", "gpu_only", "gpu_only"]


def test_tiers_alike_are_merged_into_the_larger_but_decode_and_small_batches_stay() -> None:
    static = filler(Static())
    tiers = [static.best(edge, NOTHING) for edge in (1, 4, 16, 64, 512)]
    assert [tier.new_tokens for tier in merged([tier for tier in tiers if tier])] == [1, 16, 512]


class Careless:
    """Places the first shard as it is told, possible or not."""

    name = "careless"

    def __init__(self, placement: Any) -> None:
        self.placement = placement

    def place(self, shards: Sequence[Shard], setting: Any) -> dict[str, Any]:  # noqa: ARG002
        return {**dict.fromkeys([shard.name for shard in shards], "cpu"), shards[0].name: self.placement}


@pytest.mark.parametrize(
    ("placement", "resident", "slot_bytes"),
    [
        ("pin", NOTHING, None),
        ("stream", NOTHING, 0),
        ("cpu", frozenset({"blk.0.attn"}), None),
        (None, NOTHING, None),
    ],
)
def test_a_strategy_that_places_what_cannot_be_is_named(
    placement: Any, resident: frozenset[str], slot_bytes: int | None
) -> None:
    with pytest.raises(PluginError, match=r"'careless' gives shard 'blk\.0\.attn' no possible"):
        filler(Careless(placement)).best(1, resident, slot_bytes)
