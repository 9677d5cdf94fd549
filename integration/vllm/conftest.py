"""The environment of tests that run vLLM's CPU build. Where vLLM is not installed, they are not collected."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

from integration.vllm.asking import Asker
from integration.vllm.models import write_model

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# `make test-vllm` runs them, in an environment of their own.
collect_ignore_glob = ["test_*.py"] if find_spec("vllm") is None else []

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "OMP_WAIT_POLICY": "passive",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_NO_USAGE_STATS": "1",
}
os.environ.update(ENVIRONMENT)


def pytest_configure(config: pytest.Config) -> None:
    if not collect_ignore_glob:
        # vLLM and what it imports warn of much that is theirs.
        config.addinivalue_line("filterwarnings", "default")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Return the folder of the tiny random model of an architecture; each is made once."""
    directory = tmp_path_factory.mktemp("tiny")
    return cache(lambda architecture: write_model(architecture, directory / architecture))


@pytest.fixture(scope="session")
def asker() -> Iterator[Asker]:
    found = Asker()
    yield found
    found.stop()
