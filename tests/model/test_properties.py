"""Whatever is in a file, it is read or refused; and what does not matter does not change the fingerprint."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xlm_plugin.errors import ModelError
from xlm_plugin.model import read_model

from .described import Described, write_described_gguf
from .folder import LLAMA, decoder, write_folder
from .tiny import tiny

if TYPE_CHECKING:
    import random

CONFIG_KEYS = (
    *LLAMA,
    "text_config",
    "quantization_config",
    "layer_types",
    "sliding_window",
    "sliding_window_pattern",
    "kv_lora_rank",
    "num_nextn_predict_layers",
    "num_kv_shared_layers",
    "num_global_key_value_heads",
    "num_experts",
    "tie_word_embeddings",
)

_MODEL = tiny("gemma3", attention__sliding_window=32, attention__head_count_kv=[2, 2])


def _content(model: Described) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return model.write(Path(folder) / "model.gguf").read_bytes()


_CONTENT = _content(_MODEL)
_HEADER_BYTES = len(_CONTENT) - _MODEL.tensor_bytes


def _read(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.gguf"
        path.write_bytes(content)
        read_model(path, use_mtp=True)


def _fingerprint(model: Described, files: int = 1) -> str:
    with tempfile.TemporaryDirectory() as folder:
        paths = write_described_gguf(
            Path(folder) / "model.gguf", model.hyperparameters, model.tensors, files=files
        )
        return read_model(paths[-1]).fingerprint


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_after_the_magic_are_read_or_refused(rest: bytes) -> None:
    with suppress(ModelError):
        _read(b"GGUF" + rest)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_keys_and_tensors_are_read_or_refused(rest: bytes) -> None:
    with suppress(ModelError):
        _read(_CONTENT[:24] + rest)


@settings(deadline=None)
@given(st.integers(0, len(_CONTENT) - 1))
def test_a_file_cut_anywhere_is_refused(length: int) -> None:
    with pytest.raises(ModelError):
        _read(_CONTENT[:length])


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(4, _HEADER_BYTES - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_flipped_header_bytes_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    content = bytearray(_CONTENT)
    for offset, byte in changes:
        content[offset] = byte
    with suppress(ModelError):
        _read(bytes(content))


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_order_and_splitting_do_not_change_the_fingerprint(order: random.Random, files: int) -> None:
    rows = list(_MODEL.tensors)
    order.shuffle(rows)

    assert _fingerprint(replace(_MODEL, tensors=tuple(rows)), files) == _fingerprint(_MODEL)


def test_names_and_tokenizers_do_not_change_the_fingerprint() -> None:
    described = {"general.name": "Other", "tokenizer.ggml.bos_token_id": 7, **_MODEL.hyperparameters}

    assert _fingerprint(replace(_MODEL, hyperparameters=described)) == _fingerprint(_MODEL)


def test_hyper_parameters_types_and_shapes_change_the_fingerprint() -> None:
    name, shape, _ = _MODEL.tensors[0]
    others = [
        replace(_MODEL, hyperparameters={**_MODEL.hyperparameters, "gemma3.context_length": 1024}),
        replace(_MODEL, tensors=((name, shape, "F16"), *_MODEL.tensors[1:])),
        replace(_MODEL, tensors=((name, (64, 512), "F32"), *_MODEL.tensors[1:])),
        replace(_MODEL, tensors=_MODEL.tensors[:-1]),
    ]

    assert len({_fingerprint(model) for model in (_MODEL, *others)}) == 5


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@settings(deadline=None)
@given(st.sampled_from(CONFIG_KEYS), _JSON)
def test_any_configuration_value_is_read_or_refused(key: str, value: object) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(ModelError):
        read_model(write_folder(Path(folder), {**LLAMA, key: value}, decoder()), use_mtp=True)
