"""Where KV cache does not fit: caches in host memory, then whole layers."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from xlm_hooks.planner.best import Planner
from xlm_hooks.planner.fixed import fixed_ledger
from xlm_hooks.planner.host_sides import cache_sides, layer_sides
from xlm_hooks.planner.strategies import BUILT_IN
from xlm_plugin.errors import DoesNotFitError
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.simulated import SimulatedPlan
from xlm_plugin.plan.step_costs import EVERYTHING_ON_DEVICE, HostSide
from xlm_plugin.testing import fake_device, fake_machine, tiny_model
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from xlm_plugin.plan.document import Plan

# A long context takes far more than the weights.
MODEL = tiny_model(
    layers=8, embedding_width=512, ffn_width=1024, heads=8, kv_heads=8, vocabulary=1024, context_tokens=65536
)
MACHINE = fake_machine(fake_device(link_bytes_per_s=20e9))
LONG = PlannedContext(tokens=65536, ubatch_tokens=128, host_kv=True)
SHORT = PlannedContext(tokens=1024, ubatch_tokens=128, host_kv=True)


def plan(budget_bytes: int, context: PlannedContext = LONG) -> Plan:
    return Planner(MODEL, Profile(MACHINE), context, "e2e", BUILT_IN).plan(budget_bytes)


def fixed_bytes(host: HostSide = EVERYTHING_ON_DEVICE, context: PlannedContext = LONG) -> int:
    return fixed_ledger(MODEL, context, MACHINE.device or fake_device(), host).total_bytes


ALL_CACHES = cache_sides(MODEL)[-1]


def test_sides_keep_ever_more_of_the_first_layers() -> None:
    kept = [side.kv_layers for side in cache_sides(MODEL)]
    assert kept[0] == {0}
    assert kept[-1] == set(range(8))
    assert all(less < more for less, more in pairwise(kept))
    assert [side.layers for side in layer_sides(MODEL)] == list(range(1, 9))


def test_a_context_that_fits_stays_on_the_device() -> None:
    made = plan(fixed_bytes(context=SHORT) + 64 * MIB, SHORT)
    assert made.host_kv_layers == ()
    assert made.host_layers == 0


def test_a_context_that_does_not_fit_has_caches_in_host_memory() -> None:
    made = plan(fixed_bytes() - 1)
    assert made.host_kv_layers
    assert made.ledger.kv_bytes < fixed_bytes()
    assert made.ledger.total_bytes <= made.budget_bytes
    assert any("lies in host memory" in note for note in made.notes)


def test_the_least_budget_with_all_caches_on_the_host_is_planned() -> None:
    made = plan(fixed_bytes(ALL_CACHES))
    assert made.host_kv_layers == tuple(range(8))
    assert made.ledger.kv_bytes == 0


def test_below_that_whole_layers_stay_on_the_host() -> None:
    made = plan(fixed_bytes(ALL_CACHES) - 1)
    assert made.host_layers > 0
    assert made.host_kv_layers == ()
    for tier in made.tiers:
        for layer in range(made.host_layers):
            assert {tier.placements[f"blk.{layer}.attn"], tier.placements[f"blk.{layer}.ffn"]} == {"cpu"}


def test_without_leave_nothing_goes_to_the_host() -> None:
    with pytest.raises(DoesNotFitError, match="before any weights"):
        plan(fixed_bytes() - 1, LONG.model_copy(update={"host_kv": False}))


def test_less_than_the_engine_itself_takes_is_refused() -> None:
    with pytest.raises(DoesNotFitError, match="before any weights"):
        plan(1000)


def test_attention_over_a_cache_in_host_memory_is_the_cpus_in_decode_and_a_copy_in_prefill() -> None:
    made = plan(fixed_bytes(ALL_CACHES) + 8 * MIB)
    simulated = SimulatedPlan(made, MODEL, Profile(MACHINE))
    decode, prefill = simulated.costs(1), simulated.costs(128)
    assert decode.cache_on_host.sum() == 8
    assert decode.cache_copy_bytes.sum() == 0
    assert prefill.cache_on_host.sum() == 0
    assert prefill.cache_copy_bytes.sum() > 0
    assert simulated.step(1).host_seconds >= decode.host_cache.sum()
    for tier in (made.tiers[0], made.tiers[-1]):
        assert tier.prediction
        assert simulated.step(tier.new_tokens).step_seconds == pytest.approx(tier.prediction.step_seconds)


def test_all_plans_that_need_the_host_stay_within_their_budget() -> None:
    least = fixed_bytes(layer_sides(MODEL)[-1])
    for step in range(8):
        budget_bytes = least + (fixed_bytes() - least) * step // 8
        made = plan(budget_bytes)
        assert made.ledger.total_bytes <= budget_bytes
        assert made.host_layers or made.host_kv_layers
