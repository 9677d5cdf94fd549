"""Building an engine: source, llama.cpp, our device; each step is skipped when it is done already."""

from __future__ import annotations

import re
import shutil
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_llamacpp.engine import store
from xlm_llamacpp.engine.failure import build_error
from xlm_llamacpp.engine.installed import InstalledEngine, find_engine, installed
from xlm_llamacpp.engine.process import BuildLog
from xlm_llamacpp.engine.progress import terminal_progress
from xlm_llamacpp.engine.recipe import VARIANTS, Recipe, Variant, recipe_for
from xlm_llamacpp.engine.source import apply_patches, fetch, unpack
from xlm_llamacpp.engine.toolchain import PACKAGES, Toolchain, default_variant, find_toolchain
from xlm_plugin.cache import cache_root
from xlm_plugin.errors import EngineError
from xlm_plugin.units import GIB, format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_llamacpp.engine.progress import Progress

# Source and objects together, with some room.
_NEEDED_BYTES: dict[Variant, int] = {"cpu": GIB // 2, "vulkan": GIB, "cuda": 4 * GIB}

_NINJA_LINE = re.compile(r"\[(\d+)/(\d+)\]")
_MAKE_LINE = re.compile(r"\[ *(\d+)%\]")


def ensure_engine(
    version: str | None = None, variant: Variant | None = None, progress: Progress | None = None
) -> InstalledEngine:
    """Return the engine of ``version`` (None is the default), building what is missing or out of date.

    Without a ``variant`` the most capable one that was built before counts, and on a new machine what
    fits its accelerator. A build shows on stderr how far it is, unless it is given another ``progress``,
    and waits while another process builds. Raises EngineError when a tool, the network, memory or disk
    is missing or a step fails, and UsageError for an unknown version.
    """
    if engine := find_engine(version, variant):
        return engine
    recipe = recipe_for(version, variant or _variant_in_use(version))
    with terminal_progress() if progress is None else nullcontext(progress) as shown:
        waiting = partial(shown.note, "Another build is running; waiting for it ...")
        with store.cache_errors(), store.build_lock(waiting):
            return installed(recipe) or _build(recipe, shown)


def ensure_device(version: str | None = None, progress: Progress | None = None) -> Path:
    """Return our device for engines of ``version`` that others have built, building it where it is missing.

    llama.cpp itself is not built for it, and its source does not stay. Shows and raises what
    ``ensure_engine`` does.
    """
    if engine := find_engine(version):
        return engine.library
    recipe = recipe_for(version, "cpu")
    root = store.engine_root(f"{recipe.release.version}-device")
    library = store.library(root, recipe.device)
    if library.is_file():
        return library
    with terminal_progress() if progress is None else nullcontext(progress) as shown:
        waiting = partial(shown.note, "Another build is running; waiting for it ...")
        with store.cache_errors(), store.build_lock(waiting):
            if not library.is_file():
                _run(recipe, root, shown, device_only=True)
                store.remove(root / store.SOURCE)
    return library


def _variant_in_use(version: str | None) -> Variant:
    roots = ((variant, store.engine_root(recipe_for(version, variant).name)) for variant in VARIANTS)
    return next((variant for variant, root in roots if store.read_state(root).build), default_variant())


def _build(recipe: Recipe, progress: Progress) -> InstalledEngine:
    root = store.engine_root(recipe.name)
    _run(recipe, root, progress)
    engine = installed(recipe)
    if engine is None:
        raise EngineError(
            f"The build of {recipe.name} ended without its files.", f"The log: {root / store.LOG}."
        )
    return engine


def _run(recipe: Recipe, root: Path, progress: Progress, *, device_only: bool = False) -> None:
    toolchain = find_toolchain(recipe.variant, patching=bool(recipe.patches), cache=cache_root())
    root.mkdir(parents=True, exist_ok=True)
    with (root / store.LOG).open("w", encoding="utf-8") as stream:
        log = BuildLog(root / store.LOG, stream)
        _Steps(recipe, root, toolchain, log, progress).run(device_only=device_only)


class _Steps:
    """The steps of one build. Each records what it made, so that a later build goes on from there."""

    def __init__(
        self, recipe: Recipe, root: Path, toolchain: Toolchain, log: BuildLog, progress: Progress
    ) -> None:
        self._recipe = recipe
        self._toolchain = toolchain
        self._log = log
        self._progress = progress
        self._root = root
        self._source = root / store.SOURCE
        self._engine = root / store.BUILD
        self._native = root / store.NATIVE_BUILD
        self._largest_total = 0

    def run(self, *, device_only: bool = False) -> None:
        done, state = self._recipe.done, store.read_state(self._root)
        if state.source != done.source or not self._source.is_dir():
            self._unpack()
            state = store.EngineState(source=done.source)
            store.write_state(self._root, state)
        if not device_only and (state.build != done.build or not store.server(self._root).is_file()):
            self._build_engine()
            state = replace(state, build=done.build)
            store.write_state(self._root, state)
        if not store.library(self._root, self._recipe.device).is_file():
            self._build_native()

    def _unpack(self) -> None:
        release = self._recipe.release
        self._progress.step(f"Fetching llama.cpp {release.version}")
        archive = fetch(release, self._log)
        # Unpacked files are as old as the archive: objects of another source would look newer.
        store.remove_files(self._root)
        self._check_space()
        unfinished = self._root / store.UNPACKING
        unpack(archive, release.folder, unfinished)
        apply_patches(self._recipe.patches, unfinished, self._log)
        unfinished.replace(self._source)

    def _check_space(self) -> None:
        free_bytes, needed_bytes = shutil.disk_usage(self._root).free, _NEEDED_BYTES[self._recipe.variant]
        if free_bytes < needed_bytes:
            raise EngineError(
                f"Building the engine takes {format_bytes(needed_bytes)} of disk, "
                f"but {self._root} has only {format_bytes(free_bytes)} left.",
                "Make room there, or set XLM_CACHE to a folder on another disk.",
            )

    def _build_engine(self) -> None:
        self._progress.step(f"Building llama.cpp {self._recipe.release.version} ({self._recipe.variant})")
        self._configure(self._source, self._engine, *self._recipe.options)
        self._compile(self._engine, *self._recipe.targets)

    def _build_native(self) -> None:
        self._progress.step("Building the xlm device")
        store.remove(self._native)
        options = ("-DCMAKE_BUILD_TYPE=Release", f"-DXLM_LLAMACPP_SOURCE={self._source}")
        self._configure(self._recipe.native, self._native, *options)
        self._compile(self._native, "ggml-xlm")
        store.keep_library(self._root, self._recipe.device)

    def _configure(self, source: Path, build: Path, *options: str) -> None:
        if not _is_configured_for(build, source, self._toolchain.generator):
            store.remove(build)
        self._run("Configuring", self._toolchain.configure(source, build, *options))

    def _compile(self, build: Path, *targets: str) -> None:
        self._largest_total = 0
        self._run("Compiling", self._toolchain.compile(build, *targets), self._show_progress)

    def _run(self, step: str, command: list[str], on_line: Callable[[str], None] = lambda _: None) -> None:
        result = self._log.run(command, self._toolchain.environment, on_line)
        if result.exit_code != 0:
            hint = f"Needed on Debian or Ubuntu: {PACKAGES[self._recipe.variant]}."
            raise build_error(f"{step} {self._recipe.name}", result.lines, self._log.path, hint)

    def _show_progress(self, line: str) -> None:
        if match := _NINJA_LINE.match(line):
            done, total = int(match[1]), int(match[2])
        elif match := _MAKE_LINE.match(line):
            done, total = int(match[1]), 100
        else:
            return
        # A build inside the build counts its own few files.
        if total * 2 >= self._largest_total:
            self._largest_total = max(total, self._largest_total)
            self._progress.advance(done, total)


def _is_configured_for(build: Path, source: Path, generator: str) -> bool:
    """Tell whether CMake accepts ``build`` as it is: new, or of the same source and generator."""
    try:
        lines = (build / "CMakeCache.txt").read_text(encoding="utf-8").splitlines()
    except OSError:
        return True
    cache = dict(line.split("=", 1) for line in lines if "=" in line)
    home = Path(cache.get("CMAKE_HOME_DIRECTORY:INTERNAL", "")).resolve()
    return home == source.resolve() and cache.get("CMAKE_GENERATOR:INTERNAL") == generator
