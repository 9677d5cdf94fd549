"""Imports run one way: from commands down to models and machines, and from adapters to the core."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
CORE = ROOT / "xlm_plugin"
ADAPTERS = {
    path.name: path for root in ("backends", "hooks", "profiles") for path in (ROOT / root).glob("xlm_*")
}

# Each part of the core may import those on the lines above it.
LAYERS = (
    {"errors"},
    {"cache", "text_files", "units"},
    {"backend", "hookspecs"},
    {"plugins"},
    {"machine", "model"},
    {"plan"},
    {"schedule"},
    {"serve"},
    {"cli"},
    {"testing"},
)
LEVELS = {part: level for level, parts in enumerate(LAYERS) for part in parts}
BUILDS_ON = {"xlm_ollama": {"xlm_llamacpp"}}


def part_of(file: Path) -> str:
    return file.relative_to(CORE).with_suffix("").parts[0]


def imports_of(file: Path, *, types: bool) -> Iterator[list[str]]:
    """Yield the dotted names that ``file`` imports; with ``types`` also what only type checkers see."""
    for name in _imports(ast.parse(file.read_text(encoding="utf-8")), types):
        yield name.split(".")


def _imports(node: ast.AST, types: bool) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING" and not types:
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield from (f"{child.module}.{alias.name}" for alias in child.names)
        else:
            yield from _imports(child, types)


def test_every_part_of_the_core_has_its_layer() -> None:
    assert {part_of(file) for file in CORE.rglob("*.py")} - {"__init__"} <= LEVELS.keys()


def test_the_core_imports_downwards_only() -> None:
    upwards = {
        f"{file.relative_to(ROOT)} imports {name[1]}"
        for file in CORE.rglob("*.py")
        for name in imports_of(file, types=False)
        if name[0] == "xlm_plugin" and name[1] in LEVELS and name[1] != part_of(file)
        if LEVELS[name[1]] >= LEVELS[part_of(file)]
    }
    assert upwards == set()


def test_the_core_knows_no_adapter() -> None:
    known = {
        f"{file.relative_to(ROOT)} imports {name[0]}"
        for file in CORE.rglob("*.py")
        for name in imports_of(file, types=True)
        if name[0] in ADAPTERS
    }
    assert known == set()


def test_adapters_do_not_know_each_other() -> None:
    known = {
        f"{file.relative_to(ROOT)} imports {name[0]}"
        for adapter, folder in ADAPTERS.items()
        for file in folder.rglob("*.py")
        for name in imports_of(file, types=True)
        if name[0] in ADAPTERS.keys() - {adapter} - BUILDS_ON.get(adapter, set())
    }
    assert known == set()
