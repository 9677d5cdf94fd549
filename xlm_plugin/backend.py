"""What an engine adapter offers. Core and commands meet engines only through these protocols."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan


@dataclass(frozen=True, slots=True)
class Probe:
    """What a backend finds on this machine; ``problem`` is None when the engine can start."""

    engine: str
    version: str | None
    devices: tuple[Device, ...]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How an engine listens and what it is told beside its plan. Port 0 means any free port.

    ``device`` says how large and how well linked an emulated device is; real devices know themselves.
    ``name`` is what the engine is called while it runs, beside its model's own name.
    """

    host: str = "127.0.0.1"
    port: int = 0
    threads: int | None = None
    device: Device | None = None
    extra_arguments: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class LaunchSpec:
    """A process to start: command, environment on top of ours, and where it will answer."""

    command: tuple[str, ...]
    environment: Mapping[str, str]
    url: str
    files: Mapping[Path, str] = field(default_factory=dict)
    socket: Path | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """A greedy completion: text, token ids, the log-probability of each, and measured speeds."""

    text: str
    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    prompt_tokens: int
    prefill_tokens_per_s: float
    decode_tokens_per_s: float


class Engine(Protocol):
    """A running engine process. Leaving the context stops it."""

    pid: int
    url: str

    def __enter__(self) -> Engine: ...

    def __exit__(self, *exception: object) -> None: ...

    def complete(
        self,
        prompt: str,
        new_tokens: int,
        *,
        chat: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Completion:
        """Return the greedy continuation of ``prompt``; ``on_text`` gets the text as it comes.

        A streamed completion lacks the tokens that end inside a character. Raises EngineError when the
        engine fails.
        """

    def wait(self) -> int:
        """Wait until the process ends and return its exit code. Raises EngineError where it says why."""

    def stop(self) -> None:
        """End the process."""


@dataclass(frozen=True, slots=True)
class DeviceStats:
    """What the device counts, from the start of the process.

    ``ledger_bytes`` by kind is what was handed out; ``device_bytes`` is what the device itself reports
    as taken, 0 where it reports nothing. ``resident_shards`` are in VRAM now; ``demoted_shards`` were
    planned to be and did not fit.
    """

    budget_bytes: int
    ledger_bytes: Mapping[str, int]
    device_bytes: int
    link_bytes: int
    link_seconds: float
    steps: Mapping[int, int]
    resident_shards: int
    demoted_shards: int
    prefetch_hits: int
    prefetch_waits: int
    wait_seconds: float
    state: str


class Control(Protocol):
    """Live control of a running engine. Each call takes effect at the next graph."""

    def stats(self) -> DeviceStats: ...

    def set_budget(self, budget_bytes: int) -> DeviceStats: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...

    def park(self) -> None: ...

    def wake(self) -> None: ...


class Backend(Protocol):
    """An engine adapter."""

    name: str

    def probe(self) -> Probe:
        """Return the engine and the devices found here, without starting anything long."""

    def prepare(self) -> Probe:
        """Make the engine ready, building it where it is missing, and return what is found then."""

    def read_model(self, ref: str) -> ModelGraph | None:
        """Return the model that ``ref`` names in this engine's own store, or None if it is not ours."""

    def launch_spec(self, plan: Plan, model: ModelGraph, options: LaunchOptions) -> LaunchSpec:
        """Return how to start the engine under ``plan``."""

    def stock_spec(self, plan: Plan, model: ModelGraph, options: LaunchOptions) -> LaunchSpec:
        """Return how to start the same engine without us: the bare device, the same context."""

    def start(self, spec: LaunchSpec) -> Engine:
        """Start the process and return when it answers. Raises EngineError with its last lines."""

    def control(self, engine: Engine) -> Control:
        """Return the live control of ``engine``."""

    def running(self) -> Sequence[int]:
        """Return the process ids of engines of ours that run now."""
