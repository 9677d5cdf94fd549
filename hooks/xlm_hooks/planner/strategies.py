"""The built-in strategies for shards that are not resident."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.plan.cost import active_share, host_seconds, link_seconds
from xlm_plugin.plan.padding import device_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement
    from xlm_plugin.plan.strategy import TierSetting

# Copying whole experts pays once each of them serves about this many tokens of the step (ik_llama.cpp
# pull request 520).
TOKENS_PER_EXPERT = 32


class Stock:
    """Applies where everything is resident: the engine runs as it would without a plan."""

    name = "stock"

    def place(self, shards: Sequence[Shard], setting: TierSetting) -> Mapping[str, Placement] | None:
        """Return pin for every shard, or None."""
        everything = all(shard.name in setting.resident for shard in shards)
        return {shard.name: "pin" for shard in shards} if everything else None


class GpuOnly:
    """Streams whatever is not resident; does not apply where a shard is larger than a slot."""

    name = "gpu_only"

    def place(self, shards: Sequence[Shard], setting: TierSetting) -> Mapping[str, Placement] | None:
        """Return pin or stream for every shard, or None."""
        if any(shard.name not in setting.resident and not _fits_slot(shard, setting) for shard in shards):
            return None
        return {shard.name: "pin" if shard.name in setting.resident else "stream" for shard in shards}


class Static:
    """Runs whatever is not resident on the CPU."""

    name = "static"

    def place(self, shards: Sequence[Shard], setting: TierSetting) -> Mapping[str, Placement] | None:
        """Return pin or cpu for every shard."""
        return {shard.name: "pin" if shard.name in setting.resident else "cpu" for shard in shards}


class Dynamic:
    """Streams a shard that is not resident where its copy is shorter than the CPU's work on it.

    Routed experts stream only in steps of ``E/k * 32`` tokens and more: a copy moves all of them,
    the CPU reads just the selected ones.
    """

    name = "dynamic"

    def place(self, shards: Sequence[Shard], setting: TierSetting) -> Mapping[str, Placement] | None:
        """Return pin, stream or cpu for every shard."""
        return {shard.name: _place(shard, setting) for shard in shards}


def least_streamed_tokens(shard: Shard) -> int:
    """Return the size of the smallest step in which a copy of the shard can pay."""
    return round(TOKENS_PER_EXPERT / active_share(shard)) if shard.kind == "experts" else 1


def _place(shard: Shard, setting: TierSetting) -> Placement:
    if shard.name in setting.resident:
        return "pin"
    return "stream" if _fits_slot(shard, setting) and _is_worth_a_copy(shard, setting) else "cpu"


def _fits_slot(shard: Shard, setting: TierSetting) -> bool:
    return device_bytes(shard) <= setting.slot_bytes


def _is_worth_a_copy(shard: Shard, setting: TierSetting) -> bool:
    if setting.new_tokens < least_streamed_tokens(shard):
        return False
    return link_seconds(shard, setting.rates) < host_seconds(shard, setting.new_tokens, setting.rates)
