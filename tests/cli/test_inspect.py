"""``xlm inspect``, from command line to exit code."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.model.described_models import describe
from tests.model.tiny import tiny
from xlm_plugin import model as model_package
from xlm_plugin.testing import tiny_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from xlm_plugin.model.graph import ModelGraph

MODEL = tiny_model(layers=4, context_tokens=8192, tied=True)


@pytest.fixture
def inspect(invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Any, str]]:
    """Return a function that inspects a model as JSON and returns the object and what is on stderr."""

    def run(*arguments: str, model: ModelGraph = MODEL) -> tuple[Any, str]:
        def read(path: Path, use_mtp: bool = False) -> ModelGraph:  # noqa: ARG001
            return replace(model, notes=("with MTP",)) if use_mtp else model

        monkeypatch.setattr(model_package, "read_model", read)
        result = invoke("inspect", ".", *arguments, "--json")
        assert result.exit_code == 0
        return json.loads(result.stdout), result.stderr

    return run


def test_json_has_every_size(inspect: Callable[..., tuple[Any, str]]) -> None:
    found, warnings = inspect()
    assert not warnings
    assert found["parameters"] == MODEL.parameters
    assert found["weight_bytes"] == found["device_weight_bytes"] + found["host_weight_bytes"]
    assert found["second_copy_bytes"] == MODEL.second_copy_bytes
    assert found["layers"] == 4
    assert found["kv_bytes"] == found["kv_bytes_per_token"] * 4096
    assert found["compute_bytes"] == sum(found["compute"].values())
    assert found["state_bytes_per_sequence"] == 0
    assert sum(shard["bytes"] for shard in found["shards"]) == found["weight_bytes"]
    assert found["device_bytes"] > found["fixed_bytes"] > found["kv_bytes"]


def test_c07_the_context_is_4096_tokens_and_never_all_that_was_trained(
    inspect: Callable[..., tuple[Any, str]],
) -> None:
    assert inspect()[0]["context"]["tokens"] == 4096
    assert inspect(model=tiny_model(context_tokens=512))[0]["context"]["tokens"] == 512


def test_options_shape_the_context(inspect: Callable[..., tuple[Any, str]]) -> None:
    found, _ = inspect(
        "--ctx", "8192", "--kv-type-k", "q8_0", "--kv-type-v", "f16", "--ubatch", "64", "--parallel", "2"
    )
    assert found["context"] == {
        "tokens": 8192,
        "sequences": 2,
        "ubatch_tokens": 64,
        "kv_type_k": "q8_0",
        "kv_type_v": "f16",
        "flash_attention": True,
        "host_kv": False,
    }


def test_a_context_beyond_the_trained_one_warns(inspect: Callable[..., tuple[Any, str]]) -> None:
    _, warnings = inspect("--ctx", "16384")
    assert warnings == "Warning: 16384 tokens a sequence are more than the 8192 it was trained with.\n"


def test_a_context_shared_by_sequences_counts_for_each(inspect: Callable[..., tuple[Any, str]]) -> None:
    assert not inspect("--ctx", "16384", "--parallel", "2")[1]


def test_mtp_blocks_are_counted_when_asked(inspect: Callable[..., tuple[Any, str]]) -> None:
    assert inspect()[0]["notes"] == []
    assert inspect("--mtp")[0]["notes"] == ["with MTP"]


def test_a_real_file_is_shown_as_tables(invoke: Callable[..., Result], tmp_path: Path) -> None:
    path = describe("gpt-oss-20b", "Q8_0", "MXFP4").write(tmp_path / "model.gguf")
    result = invoke("inspect", str(path), "--ctx", "131072")
    assert result.exit_code == 0
    shown = result.stdout
    assert "20.91 B parameters, 24 layers, trained for 131072 tokens" in shown
    assert re.search(r"experts +│ +24 +│ .*GiB .* device", shown)
    assert re.search(r"token_embd +│ +1 +│ .* host", shown)
    assert re.search(r"KV cache, whole context \(f16\) +│ +3.00 GiB", shown)
    assert re.search(r"KV cache, sliding windows +│ +18.00 MiB", shown)
    assert "| memory breakdown [MiB]" in shown
    assert re.search(r"device, everything resident .* = +\d+ \+ +3090 \+", shown)


def test_what_is_copied_unused_or_unknown_is_told(
    invoke: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    strange = replace(MODEL, unused_bytes=1 << 20, generic=True, notes=("It is strange.",))
    monkeypatch.setattr(model_package, "read_model", lambda path, use_mtp: strange)  # noqa: ARG005
    shown = invoke("inspect", ".").stdout
    assert "32.00 KiB are in the file once and in memory twice (tied)." in shown
    assert "1.00 MiB of the file are not loaded" in shown
    assert "The architecture 'llama' is unknown: its sizes follow a generic rule." in shown
    assert "Note: It is strange." in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--kv-type-v", "q4_0", "--no-flash-attention"), "A V cache of type q4_0 needs flash attention."),
        (("--kv-type-k", "q9_9"), "Invalid value for '--kv-type-k'"),
        (("--ctx", "0"), "Invalid value for '--ctx'"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    arguments: tuple[str, ...], sentence: str, invoke: Callable[..., Result], tmp_path: Path
) -> None:
    path = describe("Llama-3.1-8B").write(tmp_path / "model.gguf")
    result = invoke("inspect", str(path), *arguments)
    assert result.exit_code != 0
    assert sentence in result.stderr
    assert not result.stdout


def test_a_model_that_does_not_say_its_context_is_shown_with_the_usual_one(
    invoke: Callable[..., Result], tmp_path: Path
) -> None:
    path = tiny(context_length=None).write(tmp_path / "model.gguf")
    result = invoke("inspect", str(path))
    assert result.exit_code == 0
    assert not result.stderr


@pytest.mark.parametrize("name", ["nothing.gguf", "~nobody-of-that-name/x.gguf", "x" * 300])
def test_a_missing_model_is_one_sentence(invoke: Callable[..., Result], name: str) -> None:
    result = invoke("inspect", name)
    assert result.exit_code == 1
    assert "There is no model" in result.stderr
