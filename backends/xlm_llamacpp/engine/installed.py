"""Engines that are there: finding one, and listing all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from xlm_llamacpp.engine import store
from xlm_llamacpp.engine.recipe import VARIANTS, Recipe, Variant, recipe_for
from xlm_llamacpp.engine.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

Status = Literal["ready", "out of date", "incomplete"]


@dataclass(frozen=True, slots=True)
class InstalledEngine:
    """An engine that is built and current. ``library`` is our ggml device for ``GGML_BACKEND_PATH``."""

    version: str
    variant: Variant
    root: Path
    server: Path
    library: Path
    ggml_version: str


@dataclass(frozen=True, slots=True)
class ListedEngine:
    """An engine's folder in the cache, whatever its state."""

    name: str
    version: str
    variant: Variant
    ggml_version: str
    status: Status
    root: Path


def find_engine(version: str | None = None, variant: Variant | None = None) -> InstalledEngine | None:
    """Return the engine of ``version`` (None is the default) that is built and current, or None.

    Without a ``variant`` the one with the most capable accelerator wins. Raises UsageError for an
    unknown version.
    """
    variants = (variant,) if variant else VARIANTS
    engines = (installed(recipe_for(version, one)) for one in variants)
    return next((engine for engine in engines if engine), None)


def list_engines() -> list[ListedEngine]:
    """Return every engine in the cache."""
    recipes = (recipe_for(version, variant) for version in RELEASES for variant in VARIANTS)
    return [
        ListedEngine(
            recipe.name,
            recipe.release.version,
            recipe.variant,
            recipe.release.ggml_version,
            _status(recipe),
            store.engine_root(recipe.name),
        )
        for recipe in recipes
        if store.engine_root(recipe.name).is_dir()
    ]


def installed(recipe: Recipe) -> InstalledEngine | None:
    """Return the engine of ``recipe`` where all its steps are done and its files are there, or None."""
    root = store.engine_root(recipe.name)
    server, library = store.server(root), store.library(root, recipe.device)
    if store.read_state(root) != recipe.done or not (server.is_file() and library.is_file()):
        return None
    return InstalledEngine(
        recipe.release.version, recipe.variant, root, server, library, recipe.release.ggml_version
    )


def _status(recipe: Recipe) -> Status:
    if installed(recipe):
        return "ready"
    return "out of date" if store.native_folders(store.engine_root(recipe.name)) else "incomplete"
