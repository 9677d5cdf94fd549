"""The error sentences that the troubleshooting page explains are the code's own."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import DOCS, ROOT, read

if TYPE_CHECKING:
    from collections.abc import Iterator

QUOTED = re.findall(r"^\*\*(.+)\*\*$", read(DOCS / "troubleshooting.md"), re.MULTILINE)


@cache
def sentences() -> str:
    """Return all text in the code, with … for what is filled in."""
    python = [
        file for folder in ("xlm_plugin", "backends", "hooks") for file in (ROOT / folder).rglob("*.py")
    ]
    texts = [text for file in python for text in _strings(ast.parse(read(file)))]
    device = ROOT / "backends" / "xlm_llamacpp" / "native" / "src"
    texts += [read(file) for file in [*device.glob("*.cpp"), ROOT / ".ci" / "need"]]
    return "\n".join(texts)


def _strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)


@pytest.mark.parametrize("sentence", QUOTED)
def test_a_quoted_sentence_is_in_the_code(sentence: str) -> None:
    missing = [part for part in re.split(r"\s*…\s*|: |[.] ", sentence) if part.rstrip(".") not in sentences()]
    assert missing == []
