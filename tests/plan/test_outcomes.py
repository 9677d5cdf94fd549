"""What runs measured beside what was predicted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from xlm_hooks import plugin as built_in
from xlm_plugin.backend import Completion
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan import outcomes
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.make import make_plan
from xlm_plugin.plan.outcomes import last_outcomes, outcomes_of, remember
from xlm_plugin.plan.simulated import SimulatedPlan
from xlm_plugin.testing import fake_machine, plugin_manager, tiny_model
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from pathlib import Path

MODEL = tiny_model()
PROFILE = Profile(fake_machine())
ANSWER = Completion("text", (1, 2, 3), (-0.1, -0.1, -0.1), 40, 100.0, 10.0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLM_CACHE", str(tmp_path))


@pytest.fixture(scope="module")
def simulated() -> SimulatedPlan:
    with plugin_manager(built_in) as manager:
        plan = make_plan(manager, MODEL, PROFILE, PlannedContext(tokens=256, ubatch_tokens=64), GIB)
    return SimulatedPlan(plan, MODEL, PROFILE)


def test_each_phase_is_held_against_the_tier_that_it_used(simulated: SimulatedPlan) -> None:
    prefill, decode = outcomes_of(simulated, ANSWER, threads=2)
    assert (prefill.phase, prefill.tier, prefill.measured_tokens_per_s) == ("prefill", 64, 100.0)
    assert (decode.phase, decode.tier, decode.measured_tokens_per_s) == ("decode", 1, 10.0)
    assert decode.ratio == pytest.approx(10.0 / decode.predicted_tokens_per_s)
    assert "10.0 tokens/s" in decode.sentence


def test_what_was_not_measured_is_left_out(simulated: SimulatedPlan) -> None:
    found = outcomes_of(simulated, replace(ANSWER, decode_tokens_per_s=0.0), threads=2)
    assert [each.phase for each in found] == ["prefill"]


def test_the_last_outcome_of_each_phase_is_remembered(simulated: SimulatedPlan) -> None:
    assert last_outcomes(simulated.plan) == ()
    remember(outcomes_of(simulated, ANSWER, threads=2))
    later = outcomes_of(simulated, replace(ANSWER, decode_tokens_per_s=12.0), threads=2)
    remember(later)
    assert last_outcomes(simulated.plan) == later


def test_another_models_or_devices_outcomes_are_not_shown(simulated: SimulatedPlan) -> None:
    found = outcomes_of(simulated, ANSWER, threads=2)
    remember([replace(each, fingerprint="sha256:other") for each in found])
    remember([replace(each, device="OTHER0") for each in found])
    assert last_outcomes(simulated.plan) == ()


def test_no_more_than_the_last_ones_are_kept(
    simulated: SimulatedPlan, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(outcomes, "MOST_KEPT", 3)
    for _ in range(4):
        remember(outcomes_of(simulated, ANSWER, threads=2))
    assert len((tmp_path / "outcomes.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize("text", ["nonsense\n", '{"date": 1}\n', "[]\n"])
def test_a_spoilt_file_is_begun_anew(simulated: SimulatedPlan, tmp_path: Path, text: str) -> None:
    (tmp_path / "outcomes.jsonl").write_text(text)
    assert last_outcomes(simulated.plan) == ()
    found = outcomes_of(simulated, ANSWER, threads=2)
    remember(found)
    assert last_outcomes(simulated.plan) == found
