"""The llama.cpp adapter as the core meets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.backend import Probe
from xlm_plugin.errors import XlmError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_llamacpp.control import DeviceControl
    from xlm_llamacpp.engine import InstalledEngine
    from xlm_llamacpp.process import ServerProcess
    from xlm_plugin.backend import Engine, LaunchOptions, LaunchSpec
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan


class LlamaCppBackend:
    """Runs GGUF models in llama-server, under a plan that our device carries out.

    Without an ``engine`` the most capable one that is built is used, and one is built where none is.
    """

    name = "llama.cpp"

    def __init__(self, engine: InstalledEngine | None = None) -> None:
        self._engine = engine

    def probe(self) -> Probe:
        """Return the newest engine that is built, and the devices that it finds."""
        from xlm_llamacpp.engine import find_engine

        try:
            engine = self._engine or find_engine()
            return _probe(engine) if engine else Probe(self.name, None, (), "no engine is built")
        except XlmError as error:
            return Probe(self.name, None, (), str(error))

    def prepare(self) -> Probe:
        """Build the engine if there is none, and return what it finds. Raises EngineError where it fails."""
        return _probe(self._ready_engine())

    def read_model(self, ref: str) -> ModelGraph | None:  # noqa: ARG002
        """Return None: llama.cpp has no store of models of its own."""
        return None

    def launch_spec(self, plan: Plan, model: ModelGraph, options: LaunchOptions) -> LaunchSpec:
        """Return how to start llama-server under ``plan``."""
        from xlm_llamacpp.launch import planned_spec

        return planned_spec(self._ready_engine(), plan, model, options)

    def stock_spec(self, plan: Plan, model: ModelGraph, options: LaunchOptions) -> LaunchSpec:
        """Return how to start llama-server on the bare device with the plan's context."""
        from xlm_llamacpp.launch import stock_spec

        return stock_spec(self._ready_engine(), plan, model, options)

    def start(self, spec: LaunchSpec) -> ServerProcess:
        """Start llama-server and return when it answers."""
        from xlm_llamacpp.process import start

        return start(spec)

    def control(self, engine: Engine) -> DeviceControl:
        """Return the live control of ``engine``. Raises EngineError for one without a plan."""
        from xlm_llamacpp import runtime
        from xlm_llamacpp.control import DeviceControl

        return DeviceControl(runtime.find_running(str(engine.pid)).socket)

    def running(self) -> Sequence[int]:
        """Return the process ids of our engines, oldest first."""
        from xlm_llamacpp import runtime

        return [engine.record.pid for engine in runtime.running_engines()]

    def _ready_engine(self) -> InstalledEngine:
        from xlm_llamacpp.engine import ensure_engine

        return self._engine or ensure_engine()


def _probe(engine: InstalledEngine) -> Probe:
    from xlm_llamacpp.devices import list_devices

    return Probe(LlamaCppBackend.name, engine.version, list_devices(engine.server))
