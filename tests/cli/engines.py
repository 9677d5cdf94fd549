"""Command lines over a fake engine, a fake machine and the built-in planner."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_hooks import plugin as built_in
from xlm_plugin import model as model_package
from xlm_plugin.cli import cli
from xlm_plugin.errors import ModelError
from xlm_plugin.model import resolve
from xlm_plugin.testing import FakeBackend, FakePlugin, fake_machine, plugin_manager, tiny_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from xlm_plugin.backend import Backend, LaunchOptions, LaunchSpec
    from xlm_plugin.machine.document import Machine
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan

MODEL = tiny_model()
SMALL = ("tiny", "--ctx", "256", "--vram", "1GiB")


class Recording(FakeBackend):
    """Keeps what it is asked to launch."""

    def __init__(self) -> None:
        super().__init__()
        self.launched: list[tuple[Plan, LaunchOptions]] = []

    def launch_spec(self, plan: Plan, model: ModelGraph, options: LaunchOptions) -> LaunchSpec:
        self.launched.append((plan, options))
        return super().launch_spec(plan, model, options)


@dataclass
class Bench:
    """Runs command lines; ``backend`` and ``machine`` may be replaced before."""

    machine: Machine
    backend: Backend

    def xlm(self, *arguments: str) -> int:
        """Return the exit code of a command line."""
        with self._plugins([self.backend]):
            return self._exit_code(arguments)

    def xlm_without_engines(self, *arguments: str) -> int:
        """Return the exit code where no plugin brings an engine."""
        with self._plugins([]):
            return self._exit_code(arguments)

    @contextmanager
    def _plugins(self, backends: Sequence[Backend]) -> Iterator[None]:
        with plugin_manager(built_in, FakePlugin(backends, self.machine)):
            yield

    def _exit_code(self, arguments: Sequence[str]) -> int:
        try:
            cli.main(list(arguments), prog_name="xlm")
        except SystemExit as ended:
            return int(ended.code or 0)
        raise AssertionError("the command line did not exit")


def make_bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Return a bench on which the model ``tiny`` can be named."""

    def find(ref: str) -> Path:
        if ref != "tiny":
            raise ModelError(f"There is no model '{ref}'.")
        return Path("tiny.gguf")

    monkeypatch.setattr(resolve, "resolve_model", find)
    monkeypatch.setattr(model_package, "read_model", lambda path: MODEL, raising=False)  # noqa: ARG005
    machine = fake_machine()
    return Bench(machine, FakeBackend(machine.device))
