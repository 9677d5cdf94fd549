"""The weights on the device: residents, the ring's slots, and the cache of experts, within a budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import DoesNotFitError, EngineError
from xlm_plugin.units import format_bytes
from xlm_vllm.expert_cache import ExpertCache
from xlm_vllm.layout import Layout, ShardNeeds, choose_layout, least_room
from xlm_vllm.memory import allocate_device, release_device
from xlm_vllm.ring import Ring

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from xlm_plugin.plan.document import Plan
    from xlm_vllm.copying import CopyStream
    from xlm_vllm.ring import Transfer
    from xlm_vllm.weights import ShardWeights

_LEAST_SLOTS = 2


class DeviceWeights:
    """Holds what the plan makes resident, as far as the budget allows, and a ring for the rest.

    Raises DoesNotFitError where not even streaming everything fits.
    """

    def __init__(
        self, plan: Plan, shards: Sequence[ShardWeights], device: torch.device, copies: CopyStream
    ) -> None:
        self.budget_bytes = plan.budget_bytes
        self.copies = copies
        self.is_parked = False
        self.expert_cache: ExpertCache | None = None
        self._plan = plan
        self._shards = shards
        self._device = device
        self._planned_bytes = 0
        self._slots = max(plan.staging.slots, _LEAST_SLOTS)
        self._needs = [
            ShardNeeds(shard.bytes, shard.name in plan.resident, shard.name in plan.streamed)
            for shard in shards
        ]
        self._layout = self._choose_layout(plan.budget_bytes)
        self._residents: dict[int, torch.Tensor] = {}
        self._arena: list[torch.Tensor] = []
        self.ring = Ring(self._slots, self._copy_to_slot)
        self.wake()

    @property
    def resident(self) -> tuple[bool, ...]:
        """Whether each shard is resident, by its index."""
        return self._layout.resident

    @property
    def ledger_bytes(self) -> dict[str, int]:
        """Device bytes of what is placed here, by kind. The rest of the budget is vLLM's own."""
        return {
            "resident": sum(flat.nbytes for flat in self._residents.values()),
            "staging": sum(slot.nbytes for slot in self._arena),
            "expert_cache": self.expert_cache.bytes if self.expert_cache else 0,
        }

    @property
    def resident_shards(self) -> int:
        """Shards that lie on the device now."""
        return len(self._residents)

    @property
    def demoted_shards(self) -> int:
        """Shards that the plan pins and the budget does not."""
        return sum(
            needs.pinned and not stays for needs, stays in zip(self._needs, self.resident, strict=True)
        )

    def bind_resident(self, shard: int) -> None:
        """Let a resident shard's parameters read from the device."""
        self._shards[shard].bind(self._residents[shard])

    def bind_slot(self, shard: int) -> None:
        """Let a streamed shard's parameters read from its slot, once it is there."""
        self._shards[shard].bind(self._arena[self.ring.acquire(shard)])

    def release_slot(self, shard: int) -> None:
        """Let what comes next take the slot of ``shard``."""
        self.ring.release(shard)
        if not self.ring.holds(shard):
            self._shards[shard].going()

    def resize(self, budget_bytes: int) -> bool:
        """Change the layout to fit ``budget_bytes``, and return whether it did change.

        Raises DoesNotFitError, and then changes nothing.
        """
        layout = self._choose_layout(budget_bytes)
        self.budget_bytes = budget_bytes
        if layout == self._layout:
            return False
        was_parked = self.is_parked
        self._unstage()
        for shard in [shard for shard in self._residents if not layout.resident[shard]]:
            self._evict(shard)
        release_device(self._device)
        self._layout = layout
        if not was_parked:
            self.wake()
        return True

    def park(self) -> None:
        """Give back all device memory; the parameters then read the host's copies."""
        self._unstage()
        for shard in list(self._residents):
            self._evict(shard)
        self.is_parked = True
        release_device(self._device)

    def wake(self) -> None:
        """Take device memory for the present layout, and copy what is resident from the host."""
        self.is_parked = False
        arrivals = []
        for shard, stays in enumerate(self._layout.resident):
            if stays and shard not in self._residents:
                self._residents[shard] = allocate_device(self._shards[shard].bytes, self._device)
                arrivals.append(self._copy(shard, self._residents[shard]))
        slots = self._slots if self._layout.slot_bytes else 0
        self._arena = [allocate_device(self._layout.slot_bytes, self._device) for _ in range(slots)]
        if self._plan.expert_cache is not None:
            self.expert_cache = ExpertCache(self._plan.expert_cache, self._device, self._copy_expert)
        for arrival in arrivals:
            arrival.wait()
        for shard in self._residents:
            self.bind_resident(shard)

    def check_moved_bytes(self) -> None:
        """Raise EngineError unless what was copied is what was to be copied."""
        if self.copies.moved_bytes != self._planned_bytes:
            raise EngineError(
                f"{self.copies.moved_bytes} bytes were copied to the device where the plan asks for "
                f"{self._planned_bytes}.",
                "Report this with the model's name and vLLM's version.",
            )

    def close(self) -> None:
        self.park()
        self.copies.close()

    def _choose_layout(self, budget_bytes: int) -> Layout:
        ledger = self._plan.ledger
        fixed_bytes = ledger.total_bytes - ledger.resident_weight_bytes - ledger.staging_bytes
        layout = choose_layout(self._needs, self._slots, budget_bytes - fixed_bytes)
        if layout is None:
            least_bytes = fixed_bytes + least_room(self._needs, self._slots)
            raise DoesNotFitError(
                f"A budget of {format_bytes(budget_bytes)} is too small: with all weights streamed this "
                f"model takes {format_bytes(least_bytes)}.",
                f"Give it {least_bytes} bytes or more.",
                missing_bytes=least_bytes - budget_bytes,
            )
        return layout

    def _copy_to_slot(self, shard: int, slot: int) -> Transfer:
        return self._copy(shard, self._arena[slot][: self._shards[shard].bytes])

    def _copy(self, shard: int, target: torch.Tensor) -> Transfer:
        self._planned_bytes += self._shards[shard].bytes
        weights = self._shards[shard]
        return self.copies.start(weights.master, target, lambda: weights.arrived(target))

    def _copy_expert(self, source: torch.Tensor, target: torch.Tensor) -> Transfer:
        self._planned_bytes += target.nbytes
        return self.copies.start(source, target)

    def _evict(self, shard: int) -> None:
        self._shards[shard].going()
        self._shards[shard].bind(self._shards[shard].master)
        del self._residents[shard]

    def _unstage(self) -> None:
        """Give back slots and expert cache; nothing on the device reads them any more."""
        self.ring.drain()
        for shard, weights in enumerate(self._shards):
            if shard not in self._residents:
                weights.going()
                weights.bind(weights.master)
        self._arena = []
        self.expert_cache = None
