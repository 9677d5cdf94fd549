"""Routed experts on the device: what a step selects is copied, what is selected often stays."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import torch

from xlm_vllm.memory import allocate_device

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from xlm_plugin.plan.document import ExpertCache as PlannedCache
    from xlm_vllm.ring import Transfer

    Copy = Callable[[torch.Tensor, torch.Tensor], Transfer]


class ExpertCache:
    """Room for a number of experts of any layer, each the same bytes; the least recently used one goes."""

    def __init__(self, planned: PlannedCache, device: torch.device, copy: Copy) -> None:
        self.experts = planned.experts
        self.hits = 0
        self.misses = 0
        self._copy = copy
        self._flat = allocate_device(planned.bytes, device)
        self._stacks: tuple[torch.Tensor, ...] = ()
        self._slots: OrderedDict[tuple[int, int], int] = OrderedDict()

    @property
    def bytes(self) -> int:
        return self._flat.nbytes

    def stacks(self, masters: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """Return the cache as stacks of experts, each shaped like one of ``masters`` (E, ...) but for E."""
        if not self._stacks:
            stacks, offset = [], 0
            for master in masters:
                size_bytes = self.experts * master[0].nbytes
                typed = self._flat[offset : offset + size_bytes].view(master.dtype)
                stacks.append(typed.view(self.experts, *master.shape[1:]))
                offset += size_bytes
            self._stacks = tuple(stacks)
        return self._stacks

    def hold(self, shard: int, experts: Iterable[int], masters: Sequence[torch.Tensor]) -> dict[int, int]:
        """Return the cache slot of each of ``experts``, at most as many as there are slots.

        Copies those that are missing, and lets computing go on when all are there.
        """
        wanted = [(shard, expert) for expert in experts]
        for key in wanted:
            if key in self._slots:
                self._slots.move_to_end(key)
                self.hits += 1
        arrivals = []
        for key in wanted:
            if key not in self._slots:
                slot = self._free_slot()
                self._slots[key] = slot
                self.misses += 1
                for stack, master in zip(self.stacks(masters), masters, strict=True):
                    arrivals.append(self._copy(_bytes(master[key[1]]), _bytes(stack[slot])))
        for arrival in arrivals:
            arrival.wait()
        return {expert: self._slots[shard, expert] for _, expert in wanted}

    def _free_slot(self) -> int:
        if len(self._slots) < self.experts:
            return len(self._slots)
        _, slot = self._slots.popitem(last=False)
        return slot


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
