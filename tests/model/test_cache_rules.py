"""What a layer's cache holds, by hyper-parameters alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_plugin.errors import ModelError
from xlm_plugin.model import read_model

from .tiny import tiny

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.cache import CacheRule

    from .described import Described


def _cache(folder: Path, model: Described) -> CacheRule:
    return read_model(model.write(folder / "model.gguf")).cache


def _windows(cache: CacheRule) -> list[int | None]:
    return [layer.window_tokens for layer in cache.layers]


def test_heads_share_the_embedding_where_their_width_is_not_given(tmp_path: Path) -> None:
    (first, _) = _cache(tmp_path, tiny()).layers

    assert (first.key_width, first.value_width) == (2 * 16, 2 * 16)


def test_keys_and_values_may_differ_in_width(tmp_path: Path) -> None:
    model = tiny(attention__key_length=24, attention__value_length=8)
    (first, _) = _cache(tmp_path, model).layers

    assert (first.key_width, first.value_width) == (48, 16)


def test_every_head_has_its_own_keys_where_no_number_is_given(tmp_path: Path) -> None:
    (first, _) = _cache(tmp_path, tiny(attention__head_count_kv=None)).layers

    assert first.key_width == 4 * 16


def test_each_layer_has_the_heads_that_a_list_gives_it(tmp_path: Path) -> None:
    cache = _cache(tmp_path, tiny(layers=3, attention__head_count_kv=[4, 0, 2]))

    assert [(layer.layer, layer.key_width) for layer in cache.layers] == [(0, 64), (2, 32)]


@pytest.mark.parametrize(
    ("architecture", "windows"),
    [
        ("gemma2", [32, None, 32, None, 32, None]),
        ("gpt-oss", [32, None, 32, None, 32, None]),
        ("gemma3", [32, 32, 32, 32, 32, None]),
        ("gemma3n", [32, 32, 32, 32, None, 32]),
        ("cohere2", [32, 32, 32, None, 32, 32]),
        ("llama", [None] * 6),
        ("phi3", [None] * 6),
        ("somethingnew", [None] * 6),
    ],
)
def test_layers_slide_as_their_architecture_does(
    tmp_path: Path, architecture: str, windows: list[int | None]
) -> None:
    assert _windows(_cache(tmp_path, tiny(architecture, layers=6, attention__sliding_window=32))) == windows


def test_a_period_in_the_file_overrules_the_architectures(tmp_path: Path) -> None:
    model = tiny("gemma3", layers=4, attention__sliding_window=32, attention__sliding_window_pattern=2)

    assert _windows(_cache(tmp_path, model)) == [32, None, 32, None]


def test_a_list_in_the_file_serves_any_architecture(tmp_path: Path) -> None:
    pattern = [False, True, False]
    model = tiny(
        "somethingnew", layers=3, attention__sliding_window=32, attention__sliding_window_pattern=pattern
    )

    assert _windows(_cache(tmp_path, model)) == [None, 32, None]


def test_gemma_2_slides_by_4096_where_the_file_has_no_window(tmp_path: Path) -> None:
    assert _windows(_cache(tmp_path, tiny("gemma2"))) == [4096, None]


def test_a_window_of_zero_means_none(tmp_path: Path) -> None:
    assert _windows(_cache(tmp_path, tiny("gemma3", attention__sliding_window=0))) == [None, None]


def test_sliding_heads_may_have_a_width_of_their_own(tmp_path: Path) -> None:
    model = tiny(
        "gemma4",
        attention__sliding_window=32,
        attention__sliding_window_pattern=[True, False],
        attention__key_length=32,
        attention__value_length=32,
        attention__key_length_swa=16,
        attention__value_length_swa=8,
    )
    local, full = _cache(tmp_path, model).layers

    assert (local.key_width, local.value_width) == (32, 16)
    assert (full.key_width, full.value_width) == (64, 64)


def test_older_gemma_3n_files_reuse_caches_after_the_twentieth_layer(tmp_path: Path) -> None:
    cache = _cache(tmp_path, tiny("gemma3n", layers=24, attention__sliding_window=32))

    assert len(cache.layers) == 20


def test_up_projections_apart_mean_one_latent_row(tmp_path: Path) -> None:
    model = tiny(
        "deepseek2",
        layers=1,
        extra=[("blk.0.attn_k_b.weight", (16, 32, 4), "F32")],
        attention__kv_lora_rank=32,
        rope__dimension_count=8,
    )
    (layer,) = _cache(tmp_path, model).layers

    assert (layer.key_width, layer.value_width) == (40, 0)


def test_encoders_have_no_cache_and_no_output_head(tmp_path: Path) -> None:
    model = tiny("gemma-embedding", attention__causal=False)
    rows = tuple(row for row in model.tensors if row[0] != "output.weight")
    graph = read_model(type(model)(model.hyperparameters, rows).write(tmp_path / "model.gguf"))

    assert graph.cache.layers == ()
    assert graph.second_copy_bytes == 0


@pytest.mark.parametrize(
    ("architecture", "tensor", "hyperparameters", "conv", "ssm"),
    [
        (
            "mamba",
            "ssm_in",
            {"ssm__conv_kernel": 4, "ssm__inner_size": 128, "ssm__state_size": 16},
            3 * 128,
            128 * 16,
        ),
        ("lfm2", "shortconv.in_proj", {"shortconv__l_cache": 3}, 2 * 64, 0),
        ("rwkv6", "time_mix_key", {"wkv__head_size": 16}, 2 * 64, 64 * 16),
        ("kimi-linear", "ssm_f_a", {"kda__head_dim": 16, "ssm__conv_kernel": 4}, 3 * 3 * 64, 16 * 16 * 4),
    ],
)
def test_recurrent_layers_keep_the_state_of_their_kind(
    tmp_path: Path, architecture: str, tensor: str, hyperparameters: dict[str, int], conv: int, ssm: int
) -> None:
    model = tiny(architecture, extra=[(f"blk.0.{tensor}.weight", (64, 64), "F32")], **hyperparameters)
    cache = _cache(tmp_path, model)

    assert (cache.state_conv_bytes, cache.state_ssm_bytes) == (4 * conv, 4 * ssm)


def test_a_model_without_attention_has_no_cache(tmp_path: Path) -> None:
    model = tiny("mamba", attention__head_count=None, attention__head_count_kv=None, ssm__conv_kernel=4)

    assert _cache(tmp_path, model).layers == ()


def test_an_unknown_architecture_is_generic_and_says_so(tmp_path: Path) -> None:
    graph = read_model(tiny("somethingnew").write(tmp_path / "model.gguf"))

    assert graph.generic
    assert "xlm does not know the architecture 'somethingnew'" in graph.notes[0]


@pytest.mark.parametrize(
    ("hyperparameters", "sentence"),
    [
        ({"block_count": None}, "lacks 'llama.block_count'"),
        ({"block_count": 0}, "'llama.block_count' is 0"),
        ({"block_count": 2**31 - 1}, "'llama.block_count' is 2147483647"),
        ({"block_count": "two"}, "'llama.block_count' is 'two'"),
        ({"attention.head_count_kv": [2]}, "'llama.attention.head_count_kv' has 1 entries for 2 layers"),
        ({"attention.head_count_kv": 0.5}, "'llama.attention.head_count_kv' is 0.5"),
        ({"nextn_predict_layers": 2}, "all of its 2 blocks are for multi-token prediction"),
    ],
)
def test_hyper_parameters_that_make_no_sense_are_named(
    tmp_path: Path, hyperparameters: dict[str, object], sentence: str
) -> None:
    with pytest.raises(ModelError) as caught:
        read_model(tiny(**hyperparameters).write(tmp_path / "model.gguf"))

    assert sentence in caught.value.message
