"""Live control of a worker, by vLLM's ``collective_rpc``: each call lies between two steps, and KV stays."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vllm.model_executor.offloader.base import get_offloader

from xlm_plugin.backend import DeviceStats
from xlm_plugin.errors import XlmError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_vllm.offloader import XlmOffloader
    from xlm_vllm.runtime import ShardRuntime


class ShardControl:
    """Methods that a worker class gains.

    Each returns what the device counts then, or the ``error`` and its ``hint`` where it changed nothing: an
    exception would end the engine.
    """

    def xlm_stats(self) -> dict[str, Any]:
        """Return what the device counts."""
        return _report(lambda: None)

    def xlm_resize(self, budget_bytes: int) -> dict[str, Any]:
        """Keep to another budget in bytes."""
        return _report(lambda: _offloader().runtime.resize(budget_bytes))

    def xlm_park(self) -> dict[str, Any]:
        """Give back the device memory of all weights that move. The next step takes it again."""
        return _report(lambda: _offloader().runtime.park())

    def xlm_wake(self) -> dict[str, Any]:
        """Take the device memory again."""
        return _report(lambda: _offloader().runtime.wake())


def _offloader() -> XlmOffloader:
    offloader: XlmOffloader = get_offloader()
    return offloader


def _report(act: Callable[[], None]) -> dict[str, Any]:
    try:
        act()
    except XlmError as error:
        return {"error": error.message, "hint": error.hint}
    return {**asdict(_stats(_offloader().runtime)), "emulated": _offloader().device.type == "cpu"}


def _stats(runtime: ShardRuntime) -> DeviceStats:
    weights, ring = runtime.weights, runtime.weights.ring.counts
    return DeviceStats(
        budget_bytes=weights.budget_bytes,
        ledger_bytes=weights.ledger_bytes,
        device_bytes=0,
        link_bytes=weights.copies.moved_bytes,
        link_seconds=weights.copies.busy_seconds,
        steps=runtime.steps,
        resident_shards=weights.resident_shards,
        demoted_shards=weights.demoted_shards,
        prefetch_hits=ring.hits,
        prefetch_waits=ring.waits,
        wait_seconds=ring.wait_seconds,
        state="parked" if weights.is_parked else "running",
    )
