"""What whole models take: public reports and published figures; ids and names carry the case."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest

from tests.model.described_models import describe
from xlm_plugin.errors import PlanError, UsageError
from xlm_plugin.model import read_model
from xlm_plugin.model.cache import CacheContext, CacheType
from xlm_plugin.plan.compute import device_compute
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.driver import CONTEXT_BYTES
from xlm_plugin.plan.memory import estimate
from xlm_plugin.plan.target import budget_for
from xlm_plugin.testing import fake_device, tiny_model
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph

# Q5_K tables as in gemma-4-E2B UD-Q4_K_XL.
E2B_TABLES = (("token_embd.weight", "Q5_K"), ("per_layer_token_embd.weight", "Q5_K"))


@cache
def model(
    name: str,
    matrices: str,
    experts: str | None = None,
    types: tuple[tuple[str, str], ...] = (),
    *,
    use_mtp: bool = False,
) -> ModelGraph:
    """Return a described model; ``types`` are those of single tensors."""
    with TemporaryDirectory() as folder:
        path = describe(name, matrices, experts, dict(types)).write(Path(folder) / "model.gguf")
        return read_model(path, use_mtp=use_mtp)


def test_c01_gemma3_4b_takes_203_mib_of_compute_buffers_at_128k() -> None:
    found = device_compute(model("Gemma-3-4B", "Q4_0"), CacheContext(131072)).total_bytes
    assert 203 * MIB <= found <= 1.05 * 203 * MIB


def test_c05_twelve_layers_of_experts_of_gpt_oss_120b_fit_a_24_gib_card() -> None:
    graph = model("gpt-oss-120b", "Q8_0", "MXFP4")
    memory = estimate(graph, PlannedContext(tokens=32768))
    experts = [shard.movable_bytes for shard in graph.shards if shard.kind == "experts"]
    assert experts[0] / MIB == pytest.approx(1613.7, abs=0.1)
    others = memory.movable_bytes - sum(experts)
    assert others / MIB == pytest.approx(1555, abs=0.5)
    assert memory.kv_bytes / MIB == 1179
    left = 24 * GIB - 1 * GIB - memory.fixed_bytes - others
    assert left // experts[0] == 12
    assert len(experts) - left // experts[0] == 24


def test_c14_a_tied_head_is_a_second_copy_and_tables_stay_on_the_host() -> None:
    graph = model("gemma-4-E2B", "Q4_K", None, E2B_TABLES)
    table_bytes = 264 * MIB
    assert graph.host_weight_bytes == 1804 * MIB
    assert graph.second_copy_bytes == table_bytes
    memory = estimate(graph, PlannedContext(tokens=4096))
    device = memory.small_weight_bytes + memory.movable_bytes
    in_file = graph.weight_bytes - graph.second_copy_bytes
    assert device == pytest.approx(in_file - graph.host_weight_bytes + table_bytes, rel=1e-3)


def test_c15_the_per_layer_table_of_gemma_3n_takes_no_vram() -> None:
    graph = model("gemma-3n-E4B", "Q8_0")
    table = next(shard for shard in graph.shards if shard.name == "per_layer_token_embd")
    assert table.home == "host"
    assert table.bytes / GIB == pytest.approx(2.32, abs=0.01)
    memory = estimate(graph, PlannedContext(tokens=4096))
    assert memory.host_weight_bytes > table.bytes
    assert memory.small_weight_bytes + memory.movable_bytes < graph.weight_bytes - table.bytes + MIB


def test_c17_an_mtp_block_that_is_not_used_takes_nothing() -> None:
    graph = model("GLM-4.5-Air+MTP", "Q8_0")
    assert graph.unused_bytes / GIB == pytest.approx(3.58, abs=0.01)
    without = model("GLM-4.5-Air", "Q8_0")
    context = PlannedContext(tokens=4096)
    assert estimate(graph, context).movable_bytes == estimate(without, context).movable_bytes


def test_c17_drafting_takes_a_cache_a_buffer_and_states_to_go_back_to() -> None:
    plain = estimate(model("Qwen3.6-27B+MTP", "Q6_K"), PlannedContext(tokens=8192))
    drafting = estimate(model("Qwen3.6-27B+MTP", "Q6_K", use_mtp=True), PlannedContext(tokens=8192))
    assert drafting.kv_bytes - plain.kv_bytes == 8192 * 4096
    assert drafting.state_bytes == 4 * plain.state_bytes
    assert drafting.compute_bytes >= 2 * plain.compute_bytes - plain.compute.state_bytes


def test_c17_published_contexts_of_each_cache_type_take_the_same_memory() -> None:
    # What fits beside Qwen3.6-27B in Q6_K with its draft block, by cache type.
    graph = model("Qwen3.6-27B+MTP", "Q6_K", use_mtp=True)
    published: tuple[tuple[int, CacheType], ...] = ((64_000, "f16"), (114_944, "q8_0"), (199_680, "q4_0"))
    sizes = [
        estimate(graph, PlannedContext(tokens=tokens, kv_type_k=kind, kv_type_v=kind)).device_bytes
        for tokens, kind in published
    ]
    assert max(sizes) < 1.06 * min(sizes)


def test_c20_memory_is_that_of_all_experts_and_not_of_the_active_ones() -> None:
    graph = model("Qwen3-30B-A3B", "Q4_K")
    experts = next(shard for shard in graph.shards if shard.kind == "experts")
    assert experts.active_bytes < experts.bytes / 10
    memory = estimate(graph, PlannedContext(tokens=4096))
    assert memory.movable_bytes + memory.small_weight_bytes >= graph.device_weight_bytes


def test_c23_scores_without_flash_attention_take_8192_mib() -> None:
    graph = tiny_model(heads=16, embedding_width=1024)
    context = CacheContext(131072, ubatch_tokens=1024, flash_attention=False)
    assert device_compute(graph, context).score_bytes == 8192 * MIB


def test_c23_a_quantised_v_cache_without_flash_attention_is_refused_with_the_reason() -> None:
    with pytest.raises(PlanError, match="V cache of type q4_0 needs flash attention"):
        PlannedContext(tokens=4096, kv_type_v="q4_0", flash_attention=False)


def test_c23_mla_refuses_different_types_for_keys_and_values() -> None:
    context = PlannedContext(tokens=4096, kv_type_k="q8_0", kv_type_v="f16")
    with pytest.raises(UsageError, match="one row for keys and values"):
        estimate(model("DeepSeek-V2-Lite", "Q8_0"), context)


def test_c23_blocks_that_do_not_divide_a_row_are_refused() -> None:
    graph = tiny_model(embedding_width=48, heads=4, kv_heads=2)
    with pytest.raises(UsageError, match=r"32 elements in a block, which does not divide .* rows of 24"):
        estimate(graph, PlannedContext(tokens=512, kv_type_k="q8_0"))


def test_c27_quantised_caches_take_a_copy_that_grows_with_the_context() -> None:
    # 1260 MiB more were seen after a prompt of 159,204 tokens, by an engine that kept outgrown copies; b10488
    # reserves one, of one layer: 622 MiB if the model was the dense one.
    graph = model("Qwen3.6-27B", "Q3_K")
    quantised = device_compute(graph, CacheContext(159_204, kv_type_k="q8_0", kv_type_v="q8_0"))
    assert quantised.kv_copy_bytes / MIB == pytest.approx(1260 / 2, rel=0.02)
    half = device_compute(graph, CacheContext(79_602, kv_type_k="q8_0", kv_type_v="q8_0"))
    assert half.kv_copy_bytes == pytest.approx(quantised.kv_copy_bytes / 2, rel=0.01)
    assert device_compute(graph, CacheContext(159_204)).kv_copy_bytes == 0


def test_c28_what_is_missing_counts_the_margin() -> None:
    budget_bytes = budget_for(fake_device(memory_bytes=24 * GIB, free_bytes=22341 * MIB))
    assert 24840 * MIB - budget_bytes == 3523 * MIB


# Layers of Qwen3-30B-A3B Q4_0 (-ngl) that fit a budget in MiB: arXiv 2604.26334's artifact, ubatch 1024.
LADDER = {
    1024: {2000: 3, 3000: 6, 4000: 9, 5000: 12, 6000: 14, 8000: 20, 12000: 32, 16000: 44, 24000: 49},
    16384: {2000: 3, 3000: 5, 4000: 8, 5000: 11, 6000: 13, 8000: 19, 12000: 29, 16000: 40, 24000: 49},
}


@pytest.mark.parametrize(
    ("tokens", "budget_mib", "layers"),
    [(tokens, budget, layers) for tokens, row in LADDER.items() for budget, layers in row.items()],
)
def test_e13_ladder_of_layers_by_budget(tokens: int, budget_mib: int, layers: int) -> None:
    graph = model("Qwen3-30B-A3B", "Q4_0")
    context = CacheContext(tokens, ubatch_tokens=1024)
    layer_bytes = sum(shard.bytes for shard in graph.shards if shard.layer == 0)
    layer_bytes += graph.cache.kv_bytes(context) // graph.shape.layers
    # That engine asked for logits of every token of a step.
    rest_bytes = device_compute(graph, context, outputs=1024).total_bytes + CONTEXT_BYTES
    fitting = (budget_mib * MIB - rest_bytes) // layer_bytes
    assert abs(min(49, fitting) - layers) <= 1


@pytest.mark.parametrize(("ubatch_tokens", "published_mib"), [(1024, 1000), (2048, 1650)])
def test_e13_ladder_intercepts(ubatch_tokens: int, published_mib: int) -> None:
    context = CacheContext(16384, ubatch_tokens=ubatch_tokens)
    compute = device_compute(model("Qwen3-30B-A3B", "Q4_0"), context, outputs=ubatch_tokens)
    assert (compute.total_bytes + CONTEXT_BYTES) / MIB == pytest.approx(published_mib, rel=0.06)
