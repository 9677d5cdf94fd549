"""``xlm serve``, from command line to exit code."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cli.engines import SMALL, Bench, make_bench
from xlm_plugin.errors import EngineError
from xlm_plugin.testing import FakeBackend, FakeEngine

if TYPE_CHECKING:
    from xlm_plugin.backend import LaunchSpec

SERVE = ("serve", *SMALL)


class Ending(FakeBackend):
    """Starts engines that end with ``error``."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def start(self, spec: LaunchSpec) -> FakeEngine:
        error = self._error
        engine = super().start(spec)

        def wait() -> int:
            raise error

        engine.wait = wait  # type: ignore[method-assign]
        return engine


class Recording(FakeBackend):
    """Keeps the last start."""

    def start(self, spec: LaunchSpec) -> FakeEngine:
        self.spec = spec
        return super().start(spec)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return make_bench(monkeypatch)


def test_the_url_goes_to_stdout_and_how_to_ask_it_to_stderr(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.xlm(*SERVE, "--port", "8123") == 0
    shown = capsys.readouterr()
    assert shown.out == "http://127.0.0.1:8123\n"
    assert "curl http://127.0.0.1:8123/v1/chat/completions" in shown.err
    assert "resident weights" in shown.err
    assert "emulated" not in shown.err


def test_an_emulated_device_is_called_emulated(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm(*SERVE, "--device", "emulated") == 0
    assert "on an emulated accelerator" in capsys.readouterr().err


def test_ctrl_c_ends_it_in_order(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.backend = Ending(KeyboardInterrupt())
    assert bench.xlm(*SERVE) == 0
    assert not bench.backend.running()
    assert "Ended." in capsys.readouterr().err


def test_an_engine_that_dies_is_told(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.backend = Ending(EngineError("The engine was ended by SIGKILL."))
    assert bench.xlm(*SERVE) == 1
    assert "ended by SIGKILL" in capsys.readouterr().err


def test_what_follows_two_dashes_goes_to_the_engine(bench: Bench) -> None:
    backend = bench.backend = Recording()
    assert bench.xlm(*SERVE, "--", "--jinja", "--metrics") == 0
    assert backend.spec.command[1:] == ("--jinja", "--metrics")


@pytest.mark.parametrize(("host", "warned"), [("0.0.0.0", True), ("localhost", False), ("127.0.0.1", False)])
def test_an_address_that_others_reach_is_warned_about(
    host: str, warned: bool, bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.xlm(*SERVE, "--host", host) == 0
    assert ("can use this model" in capsys.readouterr().err) == warned
