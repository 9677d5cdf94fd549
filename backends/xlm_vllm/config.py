"""The ``xlm`` part of vLLM's ``--additional-config``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class XlmConfig:
    """What the user asks of one engine.

    ``plan`` is a plan document. ``pinned_limit_bytes`` bounds pinned host memory, ``link_bytes_per_s``
    is the link of an emulated device.
    """

    plan: Mapping[str, Any]
    pinned_limit_bytes: int | None = None
    link_bytes_per_s: float | None = None


def read_config(additional: Mapping[str, Any]) -> XlmConfig:
    """Return the ``xlm`` part of ``additional``."""
    return XlmConfig(**additional["xlm"])
