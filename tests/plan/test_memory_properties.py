"""What holds of memory whatever the model and the context."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xlm_plugin.model.cache import CacheContext, CacheRule, CacheType, LayerCache, row_bytes
from xlm_plugin.plan.compute import device_compute, host_compute_bytes
from xlm_plugin.testing import tiny_model

WIDENING: tuple[CacheType, ...] = ("q4_0", "q5_0", "q8_0", "f16", "f32")

layers = st.builds(
    LayerCache,
    layer=st.integers(0, 99),
    key_width=st.integers(1, 64).map(lambda heads: heads * 64),
    value_width=st.integers(0, 64).map(lambda heads: heads * 64),
    window_tokens=st.none() | st.integers(1, 8192),
)
rules = st.builds(
    CacheRule,
    st.lists(layers, min_size=1, max_size=6).map(tuple),
    state_conv_bytes=st.integers(0, 10**6),
    state_ssm_bytes=st.integers(0, 10**8),
)
contexts = st.builds(
    CacheContext,
    tokens=st.integers(1, 1 << 20),
    sequences=st.integers(1, 16),
    ubatch_tokens=st.integers(1, 4096),
    flash_attention=st.booleans(),
    unified=st.booleans(),
)


@pytest.fixture(scope="module", autouse=True)
def _block_sizes() -> None:
    """Import gguf beforehand: the first example would be charged for it."""
    row_bytes("f16", 1)


@given(rules, contexts, st.integers(0, 1 << 20))
def test_more_context_never_takes_less(rule: CacheRule, context: CacheContext, more: int) -> None:
    longer = replace(context, tokens=context.tokens + more)
    assert rule.kv_bytes(longer) >= rule.kv_bytes(context)
    model = replace(tiny_model(), cache=rule)
    assert device_compute(model, longer).total_bytes >= device_compute(model, context).total_bytes
    assert host_compute_bytes(model, longer) >= host_compute_bytes(model, context)


@given(rules, contexts, st.integers(1, 8))
def test_more_sequences_of_the_same_length_never_take_less(
    rule: CacheRule, context: CacheContext, times: int
) -> None:
    more = replace(context, sequences=context.sequences * times, tokens=context.tokens * times)
    assert rule.kv_bytes(more) >= rule.kv_bytes(context)
    assert rule.state_bytes(more.sequences) == times * rule.state_bytes(context.sequences)


@given(rules, contexts)
def test_wider_types_never_take_less(rule: CacheRule, context: CacheContext) -> None:
    sizes = [rule.kv_bytes(replace(context, kv_type_k=kind, kv_type_v=kind)) for kind in WIDENING]
    assert sizes == sorted(sizes)


@given(rules, contexts)
def test_a_window_never_takes_more_than_the_whole_context(rule: CacheRule, context: CacheContext) -> None:
    whole = replace(context, full_window=True)
    assert rule.kv_bytes(context) <= rule.kv_bytes(whole)


@given(contexts, st.integers(1, 4096))
def test_larger_steps_never_take_less(context: CacheContext, more: int) -> None:
    larger = replace(context, ubatch_tokens=context.ubatch_tokens + more)
    model = tiny_model(experts=8)
    assert device_compute(model, larger).total_bytes >= device_compute(model, context).total_bytes


@given(contexts)
def test_streams_hold_the_whole_context(context: CacheContext) -> None:
    assert context.stream_cells * context.streams >= context.tokens
    assert context.stream_cells % 256 == 0


@given(st.sampled_from(WIDENING), st.integers(1, 128))
def test_rows_of_whole_blocks_add_up(kind: CacheType, blocks: int) -> None:
    assert row_bytes(kind, 32 * blocks) == blocks * row_bytes(kind, 32)
