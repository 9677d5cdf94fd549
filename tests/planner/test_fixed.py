"""What is said when the context alone does not fit."""

from __future__ import annotations

import pytest

from xlm_hooks.planner.fixed import fixed_ledger, largest_context, require_fit
from xlm_plugin.errors import DoesNotFitError
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.testing import fake_device, tiny_model

MODEL = tiny_model(layers=8, embedding_width=512, kv_heads=4, context_tokens=65536)
DEVICE = fake_device()
LONG = PlannedContext(tokens=65536)


def fixed_bytes(tokens: int) -> int:
    return fixed_ledger(MODEL, PlannedContext(tokens=tokens), DEVICE).total_bytes


def test_a_context_that_fits_exactly_passes() -> None:
    require_fit(MODEL, LONG, DEVICE, fixed_bytes(65536))


def test_a_context_that_does_not_fit_says_what_would() -> None:
    budget_bytes = fixed_bytes(4096)
    with pytest.raises(DoesNotFitError, match="A context of 65536 tokens takes") as caught:
        require_fit(MODEL, LONG, DEVICE, budget_bytes)
    assert caught.value.missing_bytes == fixed_bytes(65536) - budget_bytes
    assert "largest context that fits is 4096 tokens" in caught.value.hint
    assert f"at least {-(-fixed_bytes(65536) // 2**20)}MiB" in caught.value.hint


def test_a_budget_that_fits_no_context_says_so() -> None:
    with pytest.raises(DoesNotFitError) as caught:
        require_fit(MODEL, LONG, DEVICE, 1)
    assert "No context fits this budget" in caught.value.hint


@pytest.mark.parametrize("tokens", [256, 1024, 4096, 65536 - 256])
def test_the_largest_context_is_the_last_multiple_of_256_that_fits(tokens: int) -> None:
    assert largest_context(MODEL, LONG, DEVICE, fixed_bytes(tokens)) == tokens
    assert largest_context(MODEL, LONG, DEVICE, fixed_bytes(tokens) - 1) == tokens - 256
