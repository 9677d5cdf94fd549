"""Memory is taken from a request that is under way and given back, and the request goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psutil
import pytest

from integration.vllm.asking import Request
from integration.vllm.models import write_model
from integration.vllm.plans import PREFILL, by_kind, plan_by
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from integration.vllm.asking import Asker

NEW_TOKENS = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a model whose weights are large beside what the process allocates anyway."""
    path = tmp_path_factory.mktemp("wide") / "llama"
    return write_model("llama", path, dtype="float32", hidden_size=512, intermediate_size=2048)


@pytest.fixture(scope="module")
def expected(folder: Path, asker: Asker) -> tuple[int, ...]:
    asker.start_stock(folder, dtype="float32")
    return Request(asker, NEW_TOKENS).finish()


@pytest.fixture
def request_under_way(folder: Path, expected: object, asker: Asker) -> Iterator[Request]:  # noqa: ARG001
    asker.start(folder, plan_by(folder, {PREFILL: by_kind("pin")}), dtype="float32")
    request = Request(asker, NEW_TOKENS)
    request.advance(10)
    yield request
    asker.stop()


def test_parking_frees_the_memory_of_weights_and_keeps_the_request(
    expected: tuple[int, ...], request_under_way: Request, asker: Asker
) -> None:
    resident_bytes = asker.stats["ledger_bytes"]["resident"]
    before_bytes = _memory_bytes()

    asker.call("xlm_park")
    freed_bytes = before_bytes - _memory_bytes()
    asker.call("xlm_wake")

    assert freed_bytes >= 0.9 * resident_bytes > 50 * MIB
    assert request_under_way.finish() == expected


def test_a_smaller_budget_frees_memory_and_keeps_the_request(
    expected: tuple[int, ...], request_under_way: Request, asker: Asker
) -> None:
    budget_bytes = asker.stats["budget_bytes"]
    before_bytes = _memory_bytes()

    (small,) = asker.call("xlm_resize", budget_bytes - 30 * MIB)
    freed_bytes = before_bytes - _memory_bytes()
    request_under_way.advance(10)
    asker.call("xlm_resize", budget_bytes)

    assert "error" not in small
    assert freed_bytes >= 20 * MIB
    assert request_under_way.finish() == expected


def test_sleep_gives_up_the_cache_too_and_the_request_is_computed_again(
    expected: tuple[int, ...], request_under_way: Request, asker: Asker
) -> None:
    resident_bytes = asker.stats["ledger_bytes"]["resident"]
    before_bytes = _memory_bytes()

    asker.sleep()
    freed_bytes = before_bytes - _memory_bytes()
    asker.wake_up()

    assert freed_bytes >= 0.9 * resident_bytes
    assert request_under_way.finish() == expected


def _memory_bytes() -> int:
    return int(psutil.Process().memory_info().rss)
