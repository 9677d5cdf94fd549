"""Machines made of a few files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_plugin.machine.files import SystemFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    System = Callable[[Mapping[str, str | bytes]], SystemFiles]


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Return a function that makes a system of the files given by path."""

    def make(files: Mapping[str, str | bytes]) -> SystemFiles:
        for name, content in files.items():
            path = tmp_path / name.lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return SystemFiles(tmp_path)

    return make
