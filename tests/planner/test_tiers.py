"""Token tiers: where they end and which strategy fills them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from xlm_hooks.planner.strategies import Dynamic, GpuOnly, Static
from xlm_hooks.planner.tiers import TierFiller, merged, tier_edges
from xlm_plugin.errors import PluginError
from xlm_plugin.machine.rates import described_rates
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.step_costs import CostModel
from xlm_plugin.plan.workload import typical_workload
from xlm_plugin.testing import fake_device, fake_host, tiny_model
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Tier
    from xlm_plugin.plan.strategy import Strategy

CONTEXT = PlannedContext(tokens=4096, ubatch_tokens=512)
NOTHING: frozenset[str] = frozenset()


def placed(model: Any) -> tuple[Shard, ...]:
    return tuple(shard for shard in model.shards if shard.home == "device")


DENSE_MODEL = tiny_model()
MOE_MODEL = tiny_model(experts=32, experts_used=4)
DENSE = placed(DENSE_MODEL)
MOE = placed(MOE_MODEL)


def filler(*strategies: Strategy, model: Any = DENSE_MODEL) -> TierFiller:
    costs = CostModel(model, placed(model), described_rates(fake_host(), fake_device()))
    return TierFiller(costs, typical_workload(CONTEXT), strategies)


def best(filler: TierFiller, tokens: int, resident: frozenset[str] = NOTHING, slot_bytes: int = GIB) -> Tier:
    tier = filler.best(tokens, resident, 2, slot_bytes)
    assert tier is not None
    return tier


def test_tiers_cover_decode_small_batches_and_prefill() -> None:
    assert tier_edges(DENSE, CONTEXT) == (1, 4, 16, 64, 512)


def test_parallel_sequences_have_a_tier_of_their_own() -> None:
    assert tier_edges(DENSE, CONTEXT.model_copy(update={"sequences": 3})) == (1, 3, 4, 16, 64, 512)


def test_no_tier_is_larger_than_a_step_can_be() -> None:
    assert tier_edges(DENSE, PlannedContext(tokens=4096, ubatch_tokens=8)) == (1, 4, 8)
    assert tier_edges(DENSE, PlannedContext(tokens=1)) == (1,)


def test_c45_a_tier_ends_where_experts_may_begin_to_stream() -> None:
    assert tier_edges(MOE, CONTEXT) == (1, 4, 16, 64, 255, 512)


def test_the_shortest_predicted_step_wins() -> None:
    candidates = filler(Static(), GpuOnly(), Dynamic())
    alone = [best(filler(strategy), 512) for strategy in candidates.strategies]
    seconds = [one.prediction.step_seconds for one in alone if one.prediction]
    assert best(candidates, 512).prediction.step_seconds == min(seconds)


def test_of_steps_alike_the_earlier_strategy_wins() -> None:
    resident = frozenset(shard.name for shard in DENSE)
    for order in ((Static(), GpuOnly()), (GpuOnly(), Static())):
        assert best(filler(*order), 1, resident).strategy == order[0].name


def test_a_tier_predicts_the_bytes_that_it_streams() -> None:
    streaming = filler(GpuOnly())
    tier = best(streaming, 1, frozenset({"output"}))
    assert tier.prediction.link_bytes == sum(s.movable_bytes for s in DENSE if s.name != "output")
    assert [shard.name for shard in streaming.streamed(tier)] == [s.name for s in DENSE if s.name != "output"]


def test_no_strategy_that_applies_is_no_tier() -> None:
    assert filler(GpuOnly()).best(1, NOTHING, 0, 0) is None
    assert filler().best(1, NOTHING, 2, GIB) is None


def test_c45_copying_experts_for_a_short_prompt_is_the_last_choice() -> None:
    short = best(filler(GpuOnly(), Static(), model=MOE_MODEL), 255)
    long = best(filler(GpuOnly(), Static(), model=MOE_MODEL), 256)
    forced = best(filler(GpuOnly(), model=MOE_MODEL), 255)
    assert [tier.strategy for tier in (short, long, forced)] == ["static", "gpu_only", "gpu_only"]


def test_tiers_alike_are_merged_into_the_larger_but_decode_and_small_batches_stay() -> None:
    tiers = [best(filler(Static()), edge) for edge in (1, 4, 16, 64, 512)]
    assert [tier.new_tokens for tier in merged(tiers)] == [1, 16, 512]


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
        ("pin", NOTHING, GIB),
        ("stream", NOTHING, 0),
        ("cpu", frozenset({"blk.0.attn"}), GIB),
        (None, NOTHING, GIB),
    ],
)
def test_a_strategy_that_places_what_cannot_be_is_named(
    placement: Any, resident: frozenset[str], slot_bytes: int
) -> None:
    with pytest.raises(PluginError, match=r"'careless' gives shard 'blk\.0\.attn' no possible"):
        filler(Careless(placement)).best(1, resident, 2, slot_bytes)
