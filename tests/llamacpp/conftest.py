from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp.launch import planned_spec
from xlm_plugin.backend import LaunchOptions
from xlm_plugin.testing import tiny_model, tiny_plan

if TYPE_CHECKING:
    from xlm_plugin.backend import LaunchSpec
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan


@dataclass(frozen=True)
class FakeInstallation:
    """Where the files of an engine would be."""

    server: Path
    library: Path
    version: str = "b1"


@pytest.fixture
def engine(tmp_path: Path) -> FakeInstallation:
    server = tmp_path / "llama-server"
    script = Path(__file__).with_name("fake_server.py")
    server.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    server.chmod(0o755)
    return FakeInstallation(server, tmp_path / "libggml-xlm.so")


@pytest.fixture(autouse=True)
def runtime_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The test's own directory may be too long for a socket's path.
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


@pytest.fixture
def model() -> ModelGraph:
    return tiny_model()


@pytest.fixture
def plan(model: ModelGraph) -> Plan:
    return tiny_plan(model)


@pytest.fixture
def spec(engine: FakeInstallation, plan: Plan, model: ModelGraph) -> LaunchSpec:
    return planned_spec(engine, plan, model, LaunchOptions())
