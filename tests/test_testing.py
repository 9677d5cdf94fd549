"""The public testing kit keeps the promises that plugin authors rely on."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pluggy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlm_plugin.backend import LaunchOptions
from xlm_plugin.errors import DoesNotFitError, EngineError, PlanError
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.plugins import get_plugin_manager
from xlm_plugin.testing import (
    FakeBackend,
    FakeControl,
    FakeEngine,
    FakePlugin,
    fake_device,
    fake_host,
    fake_machine,
    plugin_manager,
    tiny_model,
    tiny_plan,
)
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from xlm_plugin.backend import Backend, Control, Engine
    from xlm_plugin.plan.document import Placement, Plan

MODEL = tiny_model()
DENSE_SHARDS = ["token_embd", "blk.0.attn", "blk.0.ffn", "blk.1.attn", "blk.1.ffn", "output"]


def start(plan: Plan | None = None, **choices: bool) -> tuple[FakeBackend, FakeEngine]:
    backend = FakeBackend(**choices)
    plan = plan or tiny_plan(MODEL)
    return backend, backend.start(backend.launch_spec(plan, MODEL, LaunchOptions()))


def test_the_kit_needs_no_pytest() -> None:
    code = "import sys, xlm_plugin.testing; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# Models


def test_a_dense_model_has_its_shards_in_execution_order() -> None:
    assert [shard.name for shard in MODEL.shards] == DENSE_SHARDS
    assert [shard.home for shard in MODEL.shards] == ["host", *["device"] * 5]


def test_a_model_with_experts_selects_some_of_them() -> None:
    model = tiny_model(experts=8, experts_used=2)
    shard = next(shard for shard in model.shards if shard.kind == "experts")
    small_bytes = shard.bytes - shard.movable_bytes
    assert shard.active_bytes == small_bytes + shard.movable_bytes // 4
    assert (model.shape.experts, model.shape.experts_used) == (8, 2)


def test_a_tied_model_has_its_head_in_the_file_once_and_in_memory_twice() -> None:
    tied = tiny_model(tied=True)
    assert tied.weight_bytes == tied.file_bytes + tied.second_copy_bytes
    assert tied.parameters == MODEL.parameters - 64 * 256


@given(layers=st.integers(1, 6), experts=st.sampled_from([0, 4]), tied=st.booleans())
def test_the_bytes_of_a_model_add_up(layers: int, experts: int, tied: bool) -> None:
    model = tiny_model(layers=layers, experts=experts, tied=tied)
    assert model.weight_bytes == sum(shard.bytes for shard in model.shards)
    assert len(model.cache.layers) == model.shape.layers == layers


def test_models_that_differ_have_different_fingerprints() -> None:
    models = [tiny_model(), tiny_model(layers=3), tiny_model(heads=2), tiny_model(tied=True)]
    assert len({model.fingerprint for model in models}) == 4
    assert tiny_model().fingerprint == MODEL.fingerprint


# Plans


@pytest.mark.parametrize("placement", ["pin", "stream", "cpu"])
def test_a_plan_places_every_movable_shard_and_just_fits(placement: Placement) -> None:
    plan = tiny_plan(MODEL, placement=placement)
    assert plan.budget_bytes == plan.ledger.total_bytes
    assert [shard.name for shard in plan.shards] == DENSE_SHARDS[1:]
    assert {found for tier in plan.tiers for found in tier.placements.values()} == {placement}


def test_a_plan_over_its_budget_is_refused() -> None:
    with pytest.raises(DoesNotFitError):
        tiny_plan(MODEL, budget_bytes=1)


# Machines


def test_everything_is_free_on_a_fake_machine() -> None:
    machine = fake_machine()
    assert machine.device
    assert machine.device.free_bytes == machine.device.memory_bytes
    assert machine.host.available_bytes == machine.host.memory_bytes


def test_a_fake_machine_is_what_it_is_told_to_be() -> None:
    machine = fake_machine(fake_device(free_bytes=1), fake_host(available_bytes=2))
    assert machine.device
    assert (machine.device.free_bytes, machine.host.available_bytes) == (1, 2)


def test_a_fake_machine_may_have_no_accelerator() -> None:
    assert fake_machine(accelerator=False).device is None


# The engine


def test_the_fakes_are_what_the_core_expects() -> None:
    backend, engine = start()
    as_backend: Backend = backend
    as_engine: Engine = engine
    as_control: Control = as_backend.control(as_engine)
    assert isinstance(as_control, FakeControl)


def test_a_backend_finds_its_device_and_knows_its_models() -> None:
    device = fake_device(name="X")
    backend = FakeBackend(device, {"tiny": MODEL})
    assert backend.prepare() == backend.probe()
    assert (backend.probe().devices, backend.probe().problem) == ((device,), None)
    assert (backend.read_model("tiny"), backend.read_model("other")) == (MODEL, None)


def test_a_backend_with_a_problem_does_not_start() -> None:
    backend = FakeBackend(problem="it is too old")
    with pytest.raises(EngineError, match="it is too old"):
        backend.start(backend.launch_spec(tiny_plan(MODEL), MODEL, LaunchOptions()))


def test_a_plan_for_another_model_is_refused() -> None:
    with pytest.raises(PlanError, match="another model"):
        FakeBackend().launch_spec(tiny_plan(MODEL), tiny_model(layers=3), LaunchOptions())


def test_a_start_says_where_the_engine_would_answer() -> None:
    options = LaunchOptions(host="::1", port=8080, extra_arguments=("--verbose",))
    spec = FakeBackend().launch_spec(tiny_plan(MODEL), MODEL, options)
    assert (spec.url, spec.command) == ("http://::1:8080", ("fake-engine", "--verbose"))


def test_tokens_follow_from_the_prompt_alone() -> None:
    first = start()[1].complete("a prompt", 5)
    assert start(tiny_plan(MODEL, placement="stream"))[1].complete("a prompt", 5) == first
    assert start()[1].complete("another prompt", 5).tokens != first.tokens
    assert start()[1].complete("a prompt", 5, chat=True).tokens != first.tokens
    assert len(first.tokens) == len(first.logprobs) == 5


def test_a_stock_engine_gives_the_same_tokens_unless_the_backend_is_unfaithful() -> None:
    for faithful in (True, False):
        backend, planned = start(faithful=faithful)
        stock = backend.start(backend.stock_spec(tiny_plan(MODEL), MODEL, LaunchOptions()))
        same = stock.complete("a prompt", 9).tokens == planned.complete("a prompt", 9).tokens
        assert same is faithful


def test_text_comes_as_it_is_made() -> None:
    parts: list[str] = []
    completion = start()[1].complete("a prompt", 3, on_text=parts.append)
    assert len(parts) == 3
    assert "".join(parts) == completion.text


def test_an_engine_runs_until_its_context_is_left() -> None:
    backend, engine = start()
    with engine:
        assert backend.running() == [engine.pid]
    assert backend.running() == []
    with pytest.raises(EngineError, match="not running"):
        engine.complete("a prompt", 1)


def test_waiting_ends_an_engine_well() -> None:
    backend, engine = start()
    assert engine.wait() == 0
    assert backend.running() == []


def test_engines_have_process_ids_of_their_own() -> None:
    assert start()[1].pid != start()[1].pid


def test_only_planned_engines_of_the_backend_have_a_control() -> None:
    backend, _ = start()
    stock = backend.start(backend.stock_spec(tiny_plan(MODEL), MODEL, LaunchOptions()))
    with pytest.raises(EngineError, match="no control"):
        backend.control(stock)
    with pytest.raises(EngineError, match="not an engine of the fake backend"):
        FakeBackend().control(stock)


# Counters and live control


def test_steps_are_counted_by_tier_in_micro_batches() -> None:
    backend, engine = start()
    engine.complete("word " * 600, 4)
    # 600 tokens are a step of 512 and one of 88; the fourth new token takes no further step.
    assert backend.control(engine).stats().steps == {1: 3, 512: 2}


def test_streamed_shards_cross_the_link_at_each_step() -> None:
    plan = tiny_plan(MODEL, placement="stream")
    backend, engine = start(plan)
    engine.complete("a prompt", 3)
    stats = backend.control(engine).stats()
    assert stats.link_bytes == 3 * sum(shard.bytes for shard in plan.shards)
    assert stats.link_seconds > 0
    assert stats.resident_shards == 0


@pytest.mark.parametrize("placement", ["pin", "cpu"])
def test_nothing_else_crosses_the_link(placement: Placement) -> None:
    backend, engine = start(tiny_plan(MODEL, placement=placement))
    engine.complete("a prompt", 3)
    assert backend.control(engine).stats().link_bytes == 0


def test_the_ledger_is_the_plans() -> None:
    plan = tiny_plan(MODEL)
    stats = start(plan)[1].control().stats()
    assert sum(stats.ledger_bytes.values()) == stats.device_bytes == plan.ledger.total_bytes
    assert (stats.resident_shards, stats.demoted_shards) == (5, 0)


def test_a_smaller_budget_demotes_shards_and_a_larger_one_brings_them_back() -> None:
    plan = tiny_plan(MODEL)
    _, engine = start(plan)
    shrunk = engine.control().set_budget(plan.budget_bytes - 1)
    assert (shrunk.resident_shards, shrunk.demoted_shards) == (4, 1)
    assert shrunk.device_bytes <= shrunk.budget_bytes
    engine.complete("a prompt", 1)
    assert engine.control().stats().link_bytes == plan.shards[-1].bytes
    assert engine.control().set_budget(GIB).demoted_shards == 0


def test_a_budget_below_what_must_stay_is_refused() -> None:
    with pytest.raises(EngineError, match="cannot do with less"):
        start()[1].control().set_budget(1)


def test_a_paused_engine_waits_for_resume() -> None:
    _, engine = start()
    engine.control().pause()
    with pytest.raises(EngineError, match="is paused"):
        engine.complete("a prompt", 1)
    engine.control().resume()
    assert engine.complete("a prompt", 1).tokens


def test_a_parked_engine_gives_up_its_weights_until_it_wakes() -> None:
    _, engine = start()
    control = engine.control()
    control.park()
    assert (control.stats().state, control.stats().resident_shards) == ("parked", 0)
    control.wake()
    assert (control.stats().state, control.stats().resident_shards) == ("running", 5)


# Plugins


def test_a_fake_plugin_brings_an_engine_and_describes_its_machine() -> None:
    machine = fake_machine(fake_device(name="X"))
    with plugin_manager(FakePlugin(machine=machine)) as manager:
        assert get_plugin_manager() is manager
        assert manager.hook.xlm_describe_machine() is machine
        assert [device.name for backend in manager.backends() for device in backend.probe().devices] == ["X"]


def test_the_last_plugin_is_asked_first() -> None:
    first, last = fake_machine(), fake_machine(accelerator=False)
    with plugin_manager(FakePlugin(machine=first), FakePlugin(machine=last)) as manager:
        assert manager.hook.xlm_describe_machine() is last


def test_a_hook_that_does_not_exist_fails_the_authors_test() -> None:
    class Misspelt:
        @hookimpl
        def xlm_plan_redy(self) -> None: ...

    with pytest.raises(pluggy.PluginValidationError, match="xlm_plan_redy"), plugin_manager(Misspelt()):
        pass
