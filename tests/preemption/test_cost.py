"""What a switch costs."""

from __future__ import annotations

import pytest

from xlm_hooks import plugin as built_in
from xlm_hooks.preemption.cost import LoadLaw, switch_cost
from xlm_hooks.replay.models import llama_8b, llama_70b
from xlm_hooks.replay.preemption import PREEMPTIONS, largest_error_seconds
from xlm_plugin.errors import PlanError
from xlm_plugin.machine.profile import Profile
from xlm_plugin.testing import fake_device, fake_machine, plugin_manager, tiny_model

SLOW, FAST = (Profile(fake_machine(fake_device(link_bytes_per_s=speed))) for speed in (10e9, 20e9))


def test_the_six_published_preemptions_are_met_within_a_fifth_of_a_second() -> None:
    assert sum(map(len, PREEMPTIONS.values())) == 6
    assert largest_error_seconds() <= 0.2


def test_a_wake_copies_all_weights_over_the_link() -> None:
    model = llama_8b()
    slow, fast = (switch_cost(model, profile).wake_seconds for profile in (SLOW, FAST))
    assert slow == pytest.approx(2 * fast, rel=0.01)
    assert slow == pytest.approx(model.device_weight_bytes / 10e9, rel=0.01)


def test_a_park_waits_for_a_step_and_copies_nothing() -> None:
    slow, fast = (switch_cost(llama_8b(), profile).park_seconds for profile in (SLOW, FAST))
    assert slow == fast
    assert slow < switch_cost(llama_8b(), FAST).wake_seconds / 10


def test_a_larger_model_costs_more() -> None:
    small, large = (switch_cost(model, SLOW) for model in (llama_8b(), llama_70b()))
    assert small.wake_seconds < large.wake_seconds


def test_a_law_is_a_fixed_part_and_bytes_over_what_carries_them() -> None:
    assert LoadLaw(2.0, 5e9).seconds(10e9) == 4.0


def test_the_built_in_plugin_answers_the_hook() -> None:
    with plugin_manager(built_in) as manager:
        found = manager.hook.xlm_switch_cost(model=tiny_model(), profile=SLOW)
    assert found == switch_cost(tiny_model(), SLOW)


def test_without_a_device_there_is_nothing_to_switch() -> None:
    with pytest.raises(PlanError, match="no device"):
        switch_cost(tiny_model(), Profile(fake_machine(accelerator=False)))
