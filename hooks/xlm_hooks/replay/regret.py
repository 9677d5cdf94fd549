"""How much slower the planner's layouts are than the best of all, on small random models and machines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from xlm_hooks.planner.candidates import ALL_SETS_OF
from xlm_hooks.planner.patterns import EVERYTHING, MIXES, NOTHING, Filler
from xlm_hooks.planner.search import SLOTS, Search
from xlm_hooks.replay.models import random_model
from xlm_plugin.machine.rates import Rates
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.padding import device_bytes
from xlm_plugin.plan.simulate import CPU, PIN, STREAM, simulate
from xlm_plugin.plan.step_costs import CostModel
from xlm_plugin.plan.workload import typical_workload

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from xlm_plugin.plan.simulate import Codes
    from xlm_plugin.plan.step_costs import Floats

_CONTEXT = PlannedContext(tokens=4096)


@dataclass(frozen=True)
class Case:
    """A small model on some machine, with a budget for its weights and staging."""

    tiers: Sequence[tuple[Filler, float]]
    budget_bytes: int

    def regret(self, all_sets_of: int = ALL_SETS_OF) -> float:
        """Return how much longer the found layout's workload takes, as a share of the shortest."""
        found = Search(self.tiers, all_sets_of=all_sets_of).best(self.budget_bytes)
        assert found is not None
        return found.seconds / self._least_seconds - 1

    @cached_property
    def _least_seconds(self) -> float:
        """Return the shortest workload over all placements of all shards in all tiers and all stagings."""
        shards = self.tiers[0][0].shards
        sizes = np.array([device_bytes(shard) for shard in shards])
        placements = np.array(list(product((PIN, STREAM, CPU), repeat=len(shards))), dtype=np.int8)
        sets = (placements == PIN) @ (1 << np.arange(len(shards)))
        largest = np.where(placements == STREAM, sizes, 0).max(axis=1)
        resident_bytes = (placements == PIN) @ sizes
        least = np.inf
        for slots, slot_bytes in [(0, 0), *product(SLOTS, np.unique(sizes).tolist())]:
            fits = (largest <= slot_bytes) & (resident_bytes + slots * slot_bytes <= self.budget_bytes)
            if fits.any():
                by_set = sum(
                    steps * _by_set(filler, placements[fits], sets[fits], max(1, slots))
                    for filler, steps in self.tiers
                )
                least = min(least, float(np.min(by_set)))
        return least


def _by_set(filler: Filler, placements: Codes, sets: Codes, slots: int) -> Floats:
    """Return the shortest step of each set of resident shards."""
    seconds = np.full(2 ** len(filler.shards), np.inf)
    np.minimum.at(seconds, sets, simulate(filler.costs, placements, slots).step_seconds)
    return seconds


def random_cases(count: int, most_shards: int, seed: int = 0) -> Iterator[Case]:
    """Yield ``count`` cases of up to ``most_shards`` shards of several sizes; always the same ones."""
    random = Random(seed)
    for _ in range(count):
        model = random_model(random, random.randint(1, (most_shards - 1) // 2))
        shards = tuple(shard for shard in model.shards if shard.home == "device")
        costs = CostModel(model, shards, _random_rates(random))
        workload = typical_workload(_CONTEXT)
        tiers = [
            (Filler(shards, costs.costs(workload.load(tokens)), tokens, (EVERYTHING, NOTHING, *MIXES)), steps)
            for tokens, steps in workload.steps("e2e").items()
        ]
        total_bytes = sum(device_bytes(shard) for shard in shards)
        yield Case(tiers, int(total_bytes * random.uniform(0, 1)))


def _random_rates(random: Random) -> Rates:
    """Return a machine between a laptop behind a thin link and a server with a fast one."""

    def between(least: float, most: float) -> float:
        return float(least * (most / least) ** random.random())

    host = between(20e9, 200e9)
    return Rates(
        link_bytes_per_s=between(2e9, 60e9),
        device_bytes_per_s=between(150e9, 1500e9),
        device_flops_per_s=between(5e12, 200e12),
        host_bytes_per_s=host,
        host_experts_bytes_per_s=host * between(0.3, 1),
        host_attention_bytes_per_s=host * between(0.1, 1),
        host_flops_per_s=between(0.1e12, 3e12),
        crossing_seconds=between(5e-6, 300e-6),
        layer_seconds=between(10e-6, 100e-6),
        device_copy_share=random.uniform(0.8, 1),
        host_copy_share=random.uniform(0.5, 1),
    )
