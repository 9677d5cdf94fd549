"""The pages that a person reads, and what is quoted in them."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])

_BLOCK = re.compile(
    r"^```(?P<language>\w+)(?: (?P<title>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_INLINE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of code. ``title`` is what follows the language, such as a file name."""

    language: str
    title: str | None
    text: str


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> list[Block]:
    found = [Block(**match.groupdict()) for match in _BLOCK.finditer(read(page))]
    return [block for block in found if block.language in languages]


def inline_code(page: Path) -> list[str]:
    return _INLINE.findall(_BLOCK.sub("", read(page)))


def reference_builder() -> ModuleType:
    """Return ``docs/build_reference.py`` as a module."""
    spec = importlib.util.spec_from_file_location("build_reference", DOCS / "build_reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
