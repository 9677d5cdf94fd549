from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_ollama import plugin
from xlm_ollama.names import ModelName
from xlm_ollama.store import find_model, model_names
from xlm_plugin.errors import ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from tests.ollama.fake_ollama import ModelStore


@pytest.mark.parametrize(
    ("text", "full", "brief"),
    [
        ("qwen3", ("registry.ollama.ai", "library", "qwen3", "latest"), "qwen3:latest"),
        ("qwen3:30b", ("registry.ollama.ai", "library", "qwen3", "30b"), "qwen3:30b"),
        ("me/mine:1", ("registry.ollama.ai", "me", "mine", "1"), "me/mine:1"),
        ("hf.co/me/mine:Q4_0", ("hf.co", "me", "mine", "Q4_0"), "hf.co/me/mine:Q4_0"),
        ("localhost:5000/me/mine:1", ("localhost:5000", "me", "mine", "1"), "localhost:5000/me/mine:1"),
    ],
)
def test_a_name_has_four_parts_and_is_shown_briefly(
    text: str, full: tuple[str, str, str, str], brief: str
) -> None:
    assert ModelName.parse(text) == ModelName(*full)
    assert str(ModelName.parse(text)) == brief


@pytest.mark.parametrize("text", ["", ":", "a b", "../../x", "a/b/c/d", "a:b:c", "/x"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a name of an Ollama model"):
        ModelName.parse(text)


def test_a_model_is_found_with_its_adapter_and_projector(store: ModelStore) -> None:
    found = find_model("someone/rich:7b")
    assert [path.parent for path in (found.model, *found.adapters, *found.projectors)] == [
        store.folder / "blobs"
    ] * 3


def test_all_models_are_listed(store: ModelStore) -> None:
    assert sorted(map(str, model_names())) == sorted(store.names())


def test_an_unknown_name_gets_near_ones(store: ModelStore) -> None:
    with pytest.raises(ModelError) as error:
        find_model("tinny")
    assert error.value.message == "Ollama has no model 'tinny'."
    assert error.value.hint == "Near: tiny:latest."
    store.delete("tiny")


def test_no_store_at_all_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "none"))
    with pytest.raises(ModelError, match=r"There are none in .*none"):
        find_model("tiny")


def test_a_damaged_manifest_is_said(store: ModelStore) -> None:
    path = store.folder / "manifests" / ModelName.parse("tiny").path
    path.write_text('{"layers": 3}')
    with pytest.raises(ModelError, match="manifest of 'tiny:latest' is damaged"):
        find_model("tiny")


def test_a_missing_file_is_said(store: ModelStore) -> None:
    find_model("tiny").model.unlink()
    with pytest.raises(ModelError, match="lacks its file"):
        find_model("tiny")
    assert store.layers("tiny")


def test_a_model_without_weights_here_is_said(store: ModelStore) -> None:
    store.write("cloud", [store.add_layer("params", b"{}")])
    with pytest.raises(ModelError, match="has no GGUF model"):
        find_model("cloud")


@pytest.mark.usefixtures("store")
def test_commands_take_ollamas_models_with_the_server_down(invoke: Callable[..., Result]) -> None:
    result = invoke("inspect", "ollama:tiny", plugins=(plugin,))
    assert result.exit_code == 0, result.output
    assert "llama" in result.output


@pytest.mark.usefixtures("store")
def test_commands_say_which_models_are_near(invoke: Callable[..., Result]) -> None:
    result = invoke("inspect", "ollama:tinny", plugins=(plugin,))
    assert result.exit_code == 1
    assert "Near: tiny:latest." in result.output
