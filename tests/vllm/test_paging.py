"""vLLM's cache, by its own rule. The figures were worked out by hand from what vLLM 0.32 does."""

from __future__ import annotations

from xlm_plugin.model.cache import CacheRule, LayerCache
from xlm_vllm.paging import Paging

PAGING = Paging(context_tokens=1024, step_tokens=512)


def rule(full: int, windowed: int = 0, *, window_tokens: int = 128) -> CacheRule:
    layers = [LayerCache(layer, 128, 128) for layer in range(full)]
    layers += [LayerCache(full + layer, 128, 128, window_tokens) for layer in range(windowed)]
    return CacheRule(tuple(layers))


PAGE_BYTES = 16 * (128 + 128) * 2


def test_a_sequence_takes_whole_pages_in_each_layer_and_one_block_is_spare() -> None:
    assert PAGING.cache_bytes(rule(4)) == (1024 // 16 + 1) * 4 * PAGE_BYTES


def test_more_sequences_take_their_own_blocks() -> None:
    assert PAGING.cache_bytes(rule(4), sequences=3) == (3 * 64 + 1) * 4 * PAGE_BYTES


def test_a_window_takes_what_a_step_may_add_to_it() -> None:
    # 127 tokens seen, 512 new ones, and a block that both may begin in.
    windowed_blocks = -(-(127 + 512) // 16) + 1

    assert PAGING.cache_bytes(rule(2, 4)) == (64 + 2 * windowed_blocks + 1) * 2 * PAGE_BYTES


def test_nearly_equal_groups_are_padded_to_the_larger() -> None:
    windowed_blocks = -(-(127 + 512) // 16) + 1

    assert PAGING.cache_bytes(rule(13, 12)) == (64 + windowed_blocks + 1) * 13 * PAGE_BYTES


def test_ranks_share_heads_but_not_latent_rows() -> None:
    latent = CacheRule((LayerCache(0, 576, 0),))
    two = Paging(context_tokens=1024, step_tokens=512, ranks=2)

    assert two.cache_bytes(rule(4)) == PAGING.cache_bytes(rule(4)) // 2
    assert two.cache_bytes(latent) == PAGING.cache_bytes(latent)


def test_a_recurrent_state_takes_a_page_which_others_are_padded_to() -> None:
    hybrid = CacheRule((LayerCache(0, 128, 128),), state_ssm_bytes=3 * 100_000)

    assert PAGING.cache_bytes(hybrid, recurrent_layers=3) == (64 + 3 * 1 + 1) * 1 * 100_000


def test_a_model_without_a_cache_takes_nothing() -> None:
    assert PAGING.cache_bytes(CacheRule(())) == 0
