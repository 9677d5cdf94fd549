"""vLLM's KV cache: pages of some tokens in one layer each, shared by all sequences.

The rules are vLLM 0.32's (``v1/core/kv_cache_utils.py``, ``v1/kv_cache_interface.py``). Layers that need
pages alike form groups of equal size, padded where they do not divide. A block is a page in each layer of a
group.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from xlm_plugin.model.cache import CacheRule

# Groups no less equal than this are padded to the largest, not cut to the smallest.
_NEARLY_EQUAL = 1.5
# vLLM keeps one block that nothing is written to.
_NULL_BLOCKS = 1


BLOCK_TOKENS = 16


@dataclass(frozen=True, slots=True)
class Paging:
    """How a worker lays its cache out.

    A page holds ``block_tokens`` tokens of ``element_bytes`` an element. A sequence has at most
    ``context_tokens``, a step ``step_tokens``. ``ranks`` share the heads of keys and values.
    """

    context_tokens: int
    step_tokens: int
    block_tokens: int = BLOCK_TOKENS
    element_bytes: int = 2
    ranks: int = 1

    def cache_bytes(self, rule: CacheRule, recurrent_layers: int = 0, sequences: int = 1) -> int:
        """Return the bytes of blocks for ``sequences`` of full length; less is refused by vLLM for one."""
        groups = self._blocks_of_groups(rule, recurrent_layers)
        if not groups:
            return 0
        sizes = [layers for layers, _ in groups.values()]
        largest, smallest = max(sizes), min(sizes)
        group_layers = largest if largest < smallest * _NEARLY_EQUAL else smallest
        blocks = sum(-(-layers // group_layers) * needed for layers, needed in groups.values())
        return (blocks * sequences + _NULL_BLOCKS) * group_layers * self._page_bytes(rule, recurrent_layers)

    def _blocks_of_groups(
        self, rule: CacheRule, recurrent_layers: int
    ) -> Mapping[int | str, tuple[int, int]]:
        """Return by window the layers and the blocks that one sequence needs of such a layer."""
        windows = [layer.window_tokens or 0 for layer in rule.layers]
        groups: dict[int | str, tuple[int, int]] = {
            window: (windows.count(window), self._blocks(window)) for window in dict.fromkeys(windows)
        }
        if recurrent_layers:
            groups["state"] = (recurrent_layers, 1)
        return groups

    def _blocks(self, window_tokens: int) -> int:
        if not window_tokens:
            return -(-self.context_tokens // self.block_tokens)
        tokens = min(window_tokens - 1 + self.step_tokens, self.context_tokens)
        return -(-tokens // self.block_tokens) + 1

    def _page_bytes(self, rule: CacheRule, recurrent_layers: int) -> int:
        """Return the bytes of the largest page; all others are padded to it."""
        widths = [self._width(layer.key_width, layer.value_width, rule) for layer in rule.layers]
        attention_bytes = max(widths, default=0) * self.block_tokens * self.element_bytes
        state_bytes = rule.state_bytes_per_sequence // recurrent_layers if recurrent_layers else 0
        return max(attention_bytes, -(-state_bytes // self.ranks))

    def _width(self, keys: int, values: int, rule: CacheRule) -> int:
        # A latent row serves all heads, so that each rank keeps it whole.
        return keys + values if rule.is_latent else -(-(keys + values) // self.ranks)
