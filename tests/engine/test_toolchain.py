from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp.engine import ensure_engine, toolchain
from xlm_llamacpp.engine.toolchain import default_variant
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from .fakes import FakeTool


def test_missing_tools_are_named_with_their_packages(cmake: FakeTool) -> None:
    for tool in ("cmake", "g++"):
        (cmake.folder / tool).unlink()
    with pytest.raises(
        EngineError, match=r"a C\+\+ compiler and cmake.* apt-get install g\+\+ cmake ninja-build"
    ):
        ensure_engine()


def test_make_stands_in_for_ninja(cmake: FakeTool) -> None:
    (cmake.folder / "ninja").rename(cmake.folder / "make")
    ensure_engine()
    assert "-G Unix Makefiles" in cmake.calls()[0]


def test_an_old_cmake_is_told_from_a_missing_one(cmake: FakeTool) -> None:
    cmake.behave("old")
    with pytest.raises(EngineError, match=r"needs cmake 3\.18 or newer; .* is 3\.10\."):
        ensure_engine()


def test_vulkan_needs_a_shader_compiler() -> None:
    with pytest.raises(EngineError, match=r"needs glslc.* libvulkan-dev glslc spirv-headers"):
        ensure_engine(variant="vulkan")


def test_cuda_needs_its_compiler() -> None:
    with pytest.raises(EngineError, match=r"needs nvcc.* nvidia-cuda-toolkit"):
        ensure_engine(variant="cuda")


def test_patches_need_patch(cmake: FakeTool, package: Path) -> None:
    (package / "patches").mkdir()
    (package / "patches" / "some.patch").touch()
    (cmake.folder / "patch").unlink(missing_ok=True)
    with pytest.raises(EngineError, match=r"needs patch.* apt-get install .* patch"):
        ensure_engine()


def test_ccache_is_used_where_it_is_installed(cmake: FakeTool) -> None:
    (cmake.folder / "ccache").symlink_to(cmake.folder / "ninja")
    ensure_engine()
    assert f"-DCMAKE_CXX_COMPILER_LAUNCHER={cmake.folder / 'ccache'}" in cmake.calls()[0]


def test_cuda_is_the_default_only_with_both_a_device_and_a_compiler(
    cmake: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "nvidiactl"
    monkeypatch.setattr(toolchain, "_NVIDIA_DEVICES", (device,))
    device.touch()
    assert default_variant() == "cpu"
    (cmake.folder / "nvcc").symlink_to(cmake.folder / "ninja")
    assert default_variant() == "cuda"
    device.unlink()
    assert default_variant() == "cpu"


def test_cuda_code_is_built_for_the_gpu_of_this_machine(
    cmake: FakeTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cmake.folder / "nvcc").symlink_to(cmake.folder / "ninja")
    monkeypatch.setattr(toolchain, "_NVIDIA_DEVICES", (tmp_path,))
    ensure_engine(variant="cuda")
    assert "-DCMAKE_CUDA_ARCHITECTURES=native" in cmake.calls()[0]
    assert "-DGGML_CUDA=ON" in cmake.calls()[0]
