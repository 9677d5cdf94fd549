"""A running model as the scheduler sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Job:
    """A model that runs or wants to run; a higher ``priority`` goes first."""

    name: str
    priority: int
    budget_bytes: int
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class SwitchCost:
    """What it costs to take a job's VRAM and to give it back."""

    park_seconds: float
    wake_seconds: float


@dataclass(frozen=True, slots=True)
class SwitchStats:
    """What a park or a wake did: bytes freed or filled, and how long it took."""

    bytes: int
    seconds: float
