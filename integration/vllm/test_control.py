"""The budget of a running engine changes between two steps, and its answers do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.vllm.plans import PREFILL, by_kind, plan_by
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from integration.vllm.asking import Asker


@pytest.fixture(scope="module")
def pinned(tiny: Callable[[str], Path], expected: object, asker: Asker) -> Asker:  # noqa: ARG001
    """Return an engine with all shards pinned, and a budget to match."""
    folder = tiny("llama")
    asker.start(folder, plan_by(folder, {PREFILL: by_kind("pin")}))
    return asker


@pytest.fixture(scope="module")
def expected(tiny: Callable[[str], Path], asker: Asker) -> object:
    return asker.stock(tiny("llama"))


def test_a_smaller_budget_streams_what_no_longer_fits(expected: object, pinned: Asker) -> None:
    full = pinned.stats

    (small,) = pinned.call("xlm_resize", full["budget_bytes"] - 2 * MIB)

    assert small["demoted_shards"] > 0
    assert sum(small["ledger_bytes"].values()) <= small["budget_bytes"]
    assert pinned.ask() == expected
    assert pinned.stats["link_bytes"] > small["link_bytes"]

    (again,) = pinned.call("xlm_resize", full["budget_bytes"])
    assert again["demoted_shards"] == 0
    assert again["ledger_bytes"] == full["ledger_bytes"]
    assert pinned.ask() == expected


def test_a_budget_that_nothing_fits_in_is_refused_and_changes_nothing(pinned: Asker) -> None:
    before = pinned.stats

    (refusal,) = pinned.call("xlm_resize", 1000)

    assert refusal["error"].startswith("A budget of 1000 B is too small")
    assert pinned.stats == before


def test_parking_takes_all_weights_off_the_device(expected: object, pinned: Asker) -> None:
    full = pinned.stats

    (parked,) = pinned.call("xlm_park")
    (woken,) = pinned.call("xlm_wake")

    assert parked["state"] == "parked"
    assert sum(parked["ledger_bytes"].values()) == 0
    assert woken["ledger_bytes"] == full["ledger_bytes"]
    assert pinned.ask() == expected


def test_a_step_wakes_a_parked_engine(expected: object, pinned: Asker) -> None:
    pinned.call("xlm_park")

    assert pinned.ask() == expected
    assert pinned.stats["state"] == "running"
