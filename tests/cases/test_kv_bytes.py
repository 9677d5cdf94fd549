"""KV and state bytes that people reported, published or were told wrong; ids name the case.

MiB of full-context layers, then of sliding-window layers, as the case's source has them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from tests.cases.rules import RULES, full, sliding
from xlm_plugin.model.cache import CacheContext, CacheRule, CacheType
from xlm_plugin.units import GIB, MIB


@dataclass(frozen=True)
class Case:
    """A model in a context; ``within`` is how far the source rounded, in MiB."""

    id: str
    model: str
    tokens: int
    full_mib: float
    window_mib: float = 0.0
    types: tuple[CacheType, CacheType] = ("f16", "f16")
    within: float = 0.5

    @property
    def context(self) -> CacheContext:
        return CacheContext(self.tokens, kv_type_k=self.types[0], kv_type_v=self.types[1])


Q8: tuple[CacheType, CacheType] = ("q8_0", "q8_0")

CASES = (
    Case("C01 gemma3-4b@131072", "Gemma-3-4B", 131072, 2560.00, 174.00, within=0),
    Case("C04 gemma3-27b@128000 K q8_0", "Gemma-3-27B", 128000, 7656, 478, ("q8_0", "f16")),
    # 5084 for 85,000 cells; the engine rounds the context up to 85,248.
    Case("C04 gemma3-27b@85000 K q8_0", "Gemma-3-27B", 85000, 5099, 478, ("q8_0", "f16")),
    Case("C05 gpt-oss-120b@32768", "gpt-oss-120b", 32768, 1152, 27, within=0),
    Case("C06 deepseek-v3@65536", "DeepSeek-V3", 65536, 4392, within=0),
    Case("C06 deepseek-v3@65536 with values", "DeepSeek-V3 with values", 65536, 8296, within=0),
    Case("C06 deepseek-v3@65536 without MLA", "DeepSeek-V3 expanded", 65536, 305 * 1024, within=512),
    Case("C07 v2-lite@163840 without MLA", "DeepSeek-V2-Lite expanded", 163840, 42.19 * 1024, within=6),
    Case("C07 v2-lite@163840", "DeepSeek-V2-Lite", 163840, 4.75 * 1024, within=6),
    Case("C08 v2-lite@32768", "DeepSeek-V2-Lite", 32768, 0.9492 * 1024, within=0.1),
    Case("C09 qwen3.6-35b@262144", "Qwen3.6-35B-A3B", 262144, 5120, within=0),
    Case("C09 qwen3.6-35b@262144 q8_0", "Qwen3.6-35B-A3B", 262144, 2720, types=Q8, within=0),
    Case("C12 nemotron-3-nano@32768", "Nemotron-3-Nano-30B", 32768, 192, within=0),
    Case("C24 mistral-small@20480", "Mistral-Small-24B", 20480, 3200, within=0),
    Case("C24 mistral-small@20480 q8_0", "Mistral-Small-24B", 20480, 1700, types=Q8, within=0),
    Case("C24 mistral-small@24576", "Mistral-Small-24B", 24576, 3840, within=0),
    Case("C24 mistral-small@24576 q8_0", "Mistral-Small-24B", 24576, 2040, types=Q8, within=0),
    Case("E1.0 gpt-oss-20b@131072", "gpt-oss-20b", 131072, 3072.00, 18.00, within=0),
    Case("E1.0 deepseek-v3@32768", "DeepSeek-V3", 32768, 2196.00, within=0),
    Case("E1.0 deepseek-v3@32768 q8_0", "DeepSeek-V3", 32768, 1166.62, types=Q8, within=0.01),
    Case("E1.0 qwen3-30b@4096", "Qwen3-30B-A3B", 4096, 384, within=0),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_kv_bytes(case: Case) -> None:
    rule = RULES[case.model]
    assert rule.full_kv_bytes(case.context) == pytest.approx(case.full_mib * MIB, abs=case.within * MIB)
    assert rule.window_kv_bytes(case.context) == pytest.approx(case.window_mib * MIB, abs=case.within * MIB)


# Evidence 1.3: bytes per token, MiB at 4K, 8K, 32K and 128K, and at 32K in q8_0 (None: not in the table).
TABLE = {
    "Llama-3.1-8B": (131_072, 512, 1024, 4096, 16384, 2176),
    "Llama-2-70B": (327_680, 1280, 2560, 10240, 40960, 5440),
    "Mistral-Small-24B": (163_840, 640, 1280, 5120, 20480, 2720),
    "Qwen2.5-VL-7B": (57_344, 224, 448, 1792, 7168, 952),
    "Qwen3-30B-A3B": (98_304, 384, 768, 3072, 12288, 1632),
    "Qwen3-235B-A22B": (192_512, 752, 1504, 6016, 24064, 3196),
    "DeepSeek-V3": (70_272, 274.5, 549, 2196, 8784, 1166.625),
    # The table says 163,840 a token; its own sizes need half of that (10 layers).
    "Gemma-3-27B": (81_920, 944, 1264, 3184, 10864, None),
    "gpt-oss-20b": (24_576, 114, 210, 786, 3090, None),
    "gpt-oss-120b": (36_864, 171, 315, 1179, 4635, None),
    "Nemotron-3-Nano-30B": (6_144, 24, 48, 192, 768, 102),
    "Qwen3.6-35B-A3B": (20_480, 80, 160, 640, 2560, 340),
}


@pytest.mark.parametrize("model", TABLE, ids=lambda model: f"E1.3 {model}")
def test_kv_bytes_at_each_context(model: str) -> None:
    rule = RULES[model]
    per_token, *sizes, quantised = TABLE[model]
    found = [rule.kv_bytes(CacheContext(tokens)) / MIB for tokens in (4096, 8192, 32768, 131072)]
    assert rule.kv_bytes_per_token() == per_token
    assert found == sizes
    if quantised:
        context = CacheContext(32768, kv_type_k="q8_0", kv_type_v="q8_0")
        assert rule.kv_bytes(context) / MIB == quantised


@pytest.mark.parametrize(
    ("model", "conv_mib", "ssm_mib"),
    [
        pytest.param("Nemotron-3-Nano-30B", 1.62, 46.00, id="C12 nemotron-3-nano"),
        pytest.param("Qwen3.6-35B-A3B", 2.81, 60.00, id="C09 qwen3.6-35b"),
    ],
)
def test_state_bytes_per_sequence(model: str, conv_mib: float, ssm_mib: float) -> None:
    rule = RULES[model]
    assert rule.state_conv_bytes / MIB == pytest.approx(conv_mib, abs=0.01)
    assert rule.state_ssm_bytes / MIB == ssm_mib


def test_c12_state_grows_with_sequences_and_not_with_the_context() -> None:
    rule = RULES["Nemotron-3-Nano-30B"]
    assert rule.state_bytes(4) == 4 * rule.state_bytes_per_sequence
    assert rule.state_bytes_per_sequence / MIB == pytest.approx(47.62, abs=0.01)


def test_c03_sliding_layers_stop_growing_at_their_window() -> None:
    # Gemma-4-12B: 1024 + 200 MiB are published, its layers are not; these give the same sums.
    rule = CacheRule(full(8, 512) + sliding(40, 1024, 1024))
    published = CacheContext(65536, ubatch_tokens=256)
    assert rule.full_kv_bytes(published) / MIB == 1024
    assert rule.window_kv_bytes(published) / MIB == 200
    longer = replace(published, tokens=4 * 65536)
    assert rule.window_kv_bytes(longer) == rule.window_kv_bytes(published)


def test_c09_hybrids_keep_a_cache_only_in_their_full_attention_layers() -> None:
    everywhere = CacheRule(full(40, 2 * 256))
    context = CacheContext(262144)
    assert everywhere.kv_bytes(context) / MIB == 20480
    assert RULES["Qwen3.6-35B-A3B"].kv_bytes(context) * 4 == everywhere.kv_bytes(context)


def test_c17_a_draft_block_has_a_cache_of_its_own() -> None:
    assert RULES["Qwen3.6-27B draft"].kv_bytes_per_token() == 4096


def test_e10_a_shorter_context_of_qwen3_30b_saves_3456_mib() -> None:
    rule = RULES["Qwen3-30B-A3B"]
    saved = rule.kv_bytes(CacheContext(40960)) - rule.kv_bytes(CacheContext(4096))
    assert saved == 36864 * 98304 == 3456 * MIB


def test_e13_gemma4_31b_takes_81920_bytes_a_token_and_1200_mib_for_windows() -> None:
    rule = RULES["gemma-4-31B"]
    assert rule.kv_bytes_per_token() == 81_920
    assert rule.window_kv_bytes(CacheContext(32768)) == 1200 * MIB


def test_e13_full_windows_give_gemma3_27b_63488_mib_at_128k() -> None:
    rule = RULES["Gemma-3-27B"]
    assert rule.kv_bytes(CacheContext(131072, full_window=True)) == 63_488 * MIB
    assert rule.kv_bytes(CacheContext(131072)) < 11 * GIB
