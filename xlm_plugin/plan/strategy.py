"""Strategies: named ways to fill a token tier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xlm_plugin.model.graph import Shard
    from xlm_plugin.plan.document import Placement

Objective = Literal["ttft", "tps", "e2e", "batch"]


class Strategy(Protocol):
    """A named way to place the shards that are not resident."""

    name: str

    def place(
        self, shards: Sequence[Shard], resident: frozenset[str], new_tokens: int
    ) -> Mapping[str, Placement] | None:
        """Return a placement for every shard, or None where the strategy does not apply."""
