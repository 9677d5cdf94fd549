from __future__ import annotations

import sys
from pathlib import Path

import pytest

from xlm_ollama.docker import mounts
from xlm_ollama.layout import InstallError, Layout

LAYOUT = Layout(Path("/cache/docker"))


def test_the_folder_and_the_planners_python_are_mounted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/me/venv")
    monkeypatch.setattr(sys, "base_prefix", "/home/me/python3.13")
    options = mounts(LAYOUT)
    assert options[0] == "-v /cache/docker/xlm:/usr/lib/ollama/xlm:ro"
    for folder in ("/home/me/venv", "/home/me/python3.13", str(Path(__file__).parents[2])):
        assert f"-v {folder}:{folder}:ro" in options


def test_the_systems_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    with pytest.raises(InstallError, match="which cannot be mounted"):
        mounts(LAYOUT)
