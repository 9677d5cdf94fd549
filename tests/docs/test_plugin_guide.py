"""The plugin that the guide writes works as it stands there."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import DOCS, blocks

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """Return a folder with the files of the guide."""
    for block in blocks(DOCS / "guides" / "plugins.md", "python", "toml"):
        assert block.title
        (tmp_path / block.title).write_text(block.text, encoding="utf-8")
    return tmp_path


def test_its_tests_pass(plugin: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(plugin)]
    result = subprocess.run(command, cwd=plugin, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_its_entry_point_names_its_module(plugin: Path) -> None:
    project = (plugin / "pyproject.toml").read_text(encoding="utf-8")
    entry = re.search(r'\[project\.entry-points\.xlm_plugin\]\n[\w-]+ = "(\w+)"', project)
    assert entry
    assert (plugin / f"{entry[1]}.py").is_file()
