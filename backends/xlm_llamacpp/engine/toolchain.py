"""The tools of this machine that build an engine, and which Debian package brings a missing one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from xlm_llamacpp.engine.recipe import Variant

PACKAGES: dict[Variant, str] = {
    "cpu": "g++ cmake ninja-build",
    "vulkan": "g++ cmake ninja-build libvulkan-dev glslc spirv-headers",
    "cuda": "g++ cmake ninja-build nvidia-cuda-toolkit",
}

# ggml-vulkan asks for more than llama.cpp does.
_CMAKE_MINIMUM: dict[Variant, tuple[int, int]] = {"cpu": (3, 18), "vulkan": (3, 19), "cuda": (3, 18)}

_SCRIPTS = Path(sys.executable).parent
_CUDA_NVCC = Path("/usr/local/cuda/bin/nvcc")
_NVIDIA_DEVICES = (Path("/dev/nvidiactl"), Path("/dev/dxg"))
_BYTES_PER_JOB = 3 * 2**29
_VULKAN_COMPAT = Path(__file__).parent / "vulkan_compat"


@dataclass(frozen=True, slots=True)
class Toolchain:
    """CMake, what it drives, and what it is told about compilers."""

    cmake: str
    generator: str
    options: tuple[str, ...]
    environment: dict[str, str]

    def configure(self, source: Path, build: Path, *options: str) -> list[str]:
        """Return the command that configures ``source`` in ``build``."""
        where = ("-S", str(source), "-B", str(build), "-G", self.generator)
        return [self.cmake, *where, *self.options, *options]

    def compile(self, build: Path, *targets: str) -> list[str]:
        """Return the command that builds ``targets`` in ``build``."""
        return [self.cmake, "--build", str(build), "--parallel", str(_jobs()), "--target", *targets]


def default_variant() -> Variant:
    """Return ``cuda`` where there are an NVIDIA device and its compiler, else ``cpu``."""
    return "cuda" if _find_nvcc() and _has_nvidia_device() else "cpu"


def find_toolchain(variant: Variant, *, patching: bool, cache: Path) -> Toolchain:
    """Return the tools that build ``variant``. Raises EngineError that names every missing one."""
    cmake, ninja, make = which("cmake"), which("ninja"), which("make")
    compiler = os.environ.get("CXX") or which("g++") or which("clang++")
    missing = {
        "a C++ compiler": not compiler,
        "cmake": not cmake,
        "ninja": not (ninja or make),
        "glslc": variant == "vulkan" and not which("glslc"),
        "nvcc": variant == "cuda" and not _find_nvcc(),
        "patch": patching and not which("patch"),
    }
    if names := [name for name, is_missing in missing.items() if is_missing]:
        packages = PACKAGES[variant] + (" patch" if patching else "")
        raise EngineError(
            f"Building the engine needs {' and '.join(names)}, not found on this machine.",
            f"On Debian or Ubuntu: apt-get install {packages}.",
        )
    assert cmake is not None
    _check_cmake(cmake, _CMAKE_MINIMUM[variant])
    generator, maker = ("Ninja", ninja) if ninja else ("Unix Makefiles", make)
    return Toolchain(
        cmake,
        generator,
        (f"-DCMAKE_MAKE_PROGRAM={maker}", *_ccache_options(variant), *_cuda_options(variant)),
        _environment(variant, cache),
    )


def which(tool: str) -> str | None:
    """Return the path of ``tool``: on PATH, or installed with pip beside this Python."""
    return shutil.which(tool) or shutil.which(tool, path=str(_SCRIPTS))


def _check_cmake(cmake: str, minimum: tuple[int, int]) -> None:
    output = subprocess.run([cmake, "--version"], capture_output=True, text=True, check=False).stdout
    match = re.search(r"(\d+)\.(\d+)", output)
    if match is None or (int(match[1]), int(match[2])) < minimum:
        found = match[0] if match else "an unknown version"
        raise EngineError(
            f"Building the engine needs cmake {minimum[0]}.{minimum[1]} or newer; {cmake} is {found}.",
            "Install a newer one: pip install cmake.",
        )


def _ccache_options(variant: Variant) -> list[str]:
    ccache = which("ccache")
    languages = ("C", "CXX", "CUDA") if variant == "cuda" else ("C", "CXX")
    return [f"-DCMAKE_{language}_COMPILER_LAUNCHER={ccache}" for language in languages] if ccache else []


def _cuda_options(variant: Variant) -> list[str]:
    if variant != "cuda":
        return []
    # Code for this machine's GPU only; ggml's own list takes several times as long.
    native = ["-DCMAKE_CUDA_ARCHITECTURES=native"] if _has_nvidia_device() else []
    return [f"-DCMAKE_CUDA_COMPILER={_find_nvcc()}", *native]


def _environment(variant: Variant, cache: Path) -> dict[str, str]:
    environment = {
        # Paths below the cache do not count: an engine in another cache is built from the same objects.
        "CCACHE_BASEDIR": str(cache),
        "CCACHE_NOHASHDIR": "1",
        # A repository that the cache happens to lie in is not llama.cpp's.
        "GIT_CEILING_DIRECTORIES": str(cache / "engines"),
        "NINJA_STATUS": "[%f/%t] ",
    }
    if variant == "vulkan":
        paths = (str(_VULKAN_COMPAT), os.environ.get("CPLUS_INCLUDE_PATH"))
        environment["CPLUS_INCLUDE_PATH"] = os.pathsep.join(path for path in paths if path)
    return environment


def _find_nvcc() -> str | None:
    return which("nvcc") or (str(_CUDA_NVCC) if _CUDA_NVCC.is_file() else None)


def _has_nvidia_device() -> bool:
    return any(device.exists() for device in _NVIDIA_DEVICES)


def _jobs() -> int:
    """Return how many compilers may run at once: one per CPU, as far as memory goes."""
    import psutil

    by_memory = psutil.virtual_memory().available // _BYTES_PER_JOB
    return max(1, min(len(os.sched_getaffinity(0)), by_memory))
