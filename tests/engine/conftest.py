from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from xlm_llamacpp.engine import recipe, toolchain

from .fakes import FOLDER, FakeTool, Recorder, pin, write_archive

HERE = Path(__file__).parent
SOURCES = {
    "llama.cpp/CMakeLists.txt": "project(llama.cpp)\n",
    "llama.cpp/src/llama.cpp": "int answer = 41;\n",
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("XLM_CACHE", str(folder))
    return folder


@pytest.fixture
def root(cache: Path) -> Path:
    return cache / "engines" / "b10488-cpu"


@pytest.fixture(autouse=True)
def cmake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTool:
    """A PATH with a fake CMake, a ninja and a compiler, and nothing else but patch."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = (HERE / "fake_cmake.py").read_text()
    (folder / "cmake").write_text(f"#!{sys.executable} -IS\n{script}")
    for name in ("ninja", "g++"):
        (folder / name).write_text("#!/bin/sh\n")
    for tool in folder.iterdir():
        tool.chmod(0o755)
    if patch := shutil.which("patch"):
        (folder / "patch").symlink_to(patch)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr(toolchain, "_SCRIPTS", folder)
    monkeypatch.setattr(toolchain, "_CUDA_NVCC", folder / "nvcc")
    monkeypatch.setattr(toolchain, "_NVIDIA_DEVICES", ())
    return FakeTool(folder)


@pytest.fixture(autouse=True)
def pip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTool:
    """A pip that serves the archive of a tiny release, whose hash is the pinned one."""
    folder = tmp_path / "python" / "pip"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    shutil.copy(HERE / "fake_pip.py", folder / "__main__.py")
    archive = folder / f"{FOLDER}.tar.gz"
    write_archive(archive, [(f"{FOLDER}/{name}", text) for name, text in SOURCES.items()])
    pin(archive, monkeypatch)
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    return FakeTool(folder)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The adapter's package with a native device and no patches."""
    folder = tmp_path / "package"
    (folder / "native").mkdir(parents=True)
    (folder / "native" / "CMakeLists.txt").write_text("project(xlm)\n")
    monkeypatch.setattr(recipe, "PACKAGE", folder)
    return folder


@pytest.fixture
def progress() -> Recorder:
    return Recorder()
