"""Live control of a worker, by vLLM's ``collective_rpc``: each call lies between two steps, and KV stays."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vllm.model_executor.offloader.base import get_offloader

from xlm_plugin.backend import DeviceStats
from xlm_plugin.errors import XlmError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_vllm.offloader import XlmOffloader
    from xlm_vllm.runtime import ShardRuntime


class ShardControl:
    """Methods that a worker class gains.

    Those that are called by RPC return what the device counts then, or the ``error`` and its ``hint`` where
    they changed nothing: an exception would end the engine.
    """

    def xlm_stats(self) -> dict[str, Any]:
        """Return what the device counts."""
        return _counted()

    def xlm_plan(self) -> dict[str, Any]:
        """Return the plan document of this worker."""
        return _runtime().plan.model_dump(mode="json")

    def xlm_resize(self, budget_bytes: int) -> dict[str, Any]:
        """Keep to another budget in bytes."""
        try:
            moved = _runtime().resize(budget_bytes)
        except XlmError as error:
            return {"error": error.message, "hint": error.hint}
        if moved:
            self.addresses_changed()
        return _counted()

    def xlm_park(self) -> dict[str, Any]:
        """Give back the device memory of all weights that move. The next step takes it again."""
        _runtime().park()
        return _counted()

    def xlm_wake(self) -> dict[str, Any]:
        """Take the device memory again."""
        if _runtime().weights.is_parked:
            _runtime().wake()
            self.addresses_changed()
        return _counted()

    @contextmanager
    def step(self, new_tokens: int) -> Iterator[None]:
        """Run one step of ``new_tokens`` tokens. Raises EngineError where it did not keep to the plan."""
        if new_tokens:
            self.xlm_wake()
            _runtime().begin_step(new_tokens)
        yield
        if new_tokens:
            _runtime().finish_step()

    def addresses_changed(self) -> None:
        """Weights that lie on the device may have got other addresses."""


def _offloader() -> XlmOffloader:
    found: XlmOffloader = get_offloader()
    return found


def _runtime() -> ShardRuntime:
    return _offloader().runtime


def _counted() -> dict[str, Any]:
    return {**asdict(_stats(_runtime())), "emulated": not _offloader().crosses}


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
