"""What an engine is made from, as data and as digests that tell when it is out of date."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from xlm_llamacpp.engine.cpu import cpu_options
from xlm_llamacpp.engine.releases import Release, find_release
from xlm_llamacpp.engine.store import EngineState

if TYPE_CHECKING:
    from collections.abc import Iterable

Variant = Literal["cpu", "vulkan", "cuda"]

# Each holds the CPU backend too, so the first one found is the most that this machine has.
VARIANTS: tuple[Variant, ...] = ("cuda", "vulkan", "cpu")

PACKAGE = Path(__file__).parent.parent

_OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release",
    "-DBUILD_SHARED_LIBS=ON",
    # The folder may be moved: libraries are found beside the program.
    "-DCMAKE_BUILD_RPATH_USE_ORIGIN=ON",
    "-DGGML_BACKEND_DL=ON",
    "-DGGML_NATIVE=OFF",
    "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
    "-DLLAMA_BUILD_TESTS=OFF",
    "-DLLAMA_BUILD_EXAMPLES=OFF",
    "-DLLAMA_BUILD_APP=OFF",
    "-DLLAMA_OPENSSL=OFF",
    "-DLLAMA_CURL=OFF",
)
_TARGETS = ("llama-server", "llama-bench", "ggml-cpu")
_ACCELERATORS: dict[Variant, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cpu": ((), ()),
    "vulkan": (("-DGGML_VULKAN=ON",), ("ggml-vulkan",)),
    "cuda": (("-DGGML_CUDA=ON",), ("ggml-cuda",)),
}


@dataclass(frozen=True)
class Recipe:
    """One engine to build.

    ``done`` is the state that its folder records once it is built, and ``device`` the digest of what our
    device for it is made from.
    """

    release: Release
    variant: Variant
    options: tuple[str, ...]
    targets: tuple[str, ...]
    patches: tuple[Path, ...]
    native: Path
    done: EngineState
    device: str

    @property
    def name(self) -> str:
        """The name of the engine's folder."""
        return f"{self.release.version}-{self.variant}"


def recipe_for(version: str | None, variant: Variant) -> Recipe:
    """Return the recipe of ``version`` (None is the default) on this machine. Raises UsageError."""
    release = find_release(version)
    accelerator_options, accelerator_targets = _ACCELERATORS[variant]
    number = f"-DLLAMA_BUILD_NUMBER={release.version.removeprefix('b')}"
    options = (*_OPTIONS, number, *cpu_options(), *accelerator_options)
    targets = (*_TARGETS, *accelerator_targets)
    patches = tuple(sorted((PACKAGE / "patches").glob("*.patch")))
    native = PACKAGE / "native"
    source = _digest([release.sha256.encode(), *_contents(patches, PACKAGE)])
    return Recipe(
        release=release,
        variant=variant,
        options=options,
        targets=targets,
        patches=patches,
        native=native,
        done=EngineState(
            source=source,
            build=_digest(text.encode() for text in (source, *options, *targets)),
        ),
        device=_digest([source.encode(), *_contents(_sources(native), native)]),
    )


def _sources(folder: Path) -> list[Path]:
    """Return the files under ``folder``, without what a developer built there."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if "build" not in path.relative_to(folder).parts)


def _contents(files: Iterable[Path], base: Path) -> Iterable[bytes]:
    for file in files:
        yield file.relative_to(base).as_posix().encode()
        yield file.read_bytes()


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return digest.hexdigest()
