"""``xlm run``, from command line to exit code."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.cli.engines import MODEL, SMALL, Bench, Recording, make_bench
from xlm_plugin.backend import Completion
from xlm_plugin.cli._launch import orderly_end
from xlm_plugin.errors import EngineError
from xlm_plugin.testing import FakeBackend, fake_device, fake_machine, tiny_model, tiny_plan

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.backend import LaunchSpec
    from xlm_plugin.testing import FakeEngine

RUN = ("run", *SMALL, "-p", "a prompt of five words", "--new-tokens", "3")


class Doubting(FakeBackend):
    """Cannot start the stock engine."""

    def start(self, spec: LaunchSpec) -> FakeEngine:
        if not spec.files:
            raise EngineError("The device has no room.")
        return super().start(spec)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    return make_bench(monkeypatch)


def test_the_text_goes_to_stdout_and_everything_else_to_stderr(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.xlm(*RUN) == 0
    shown = capsys.readouterr()
    assert len(shown.out.split()) == 3
    assert "resident weights" in shown.err
    assert "budget 1.00 GiB, ledger " in shown.err
    assert "prefill 1000.0 tokens/s (5 tokens), decode 100.0 tokens/s" in shown.err


def test_a_check_compares_with_the_stock_engine(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm(*RUN, "--check") == 0
    shown = capsys.readouterr()
    assert "tokens identical to stock: yes" in shown.err
    assert "stock: prefill" in shown.err


def test_other_tokens_than_stock_are_an_error(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.backend = FakeBackend(faithful=False)
    assert bench.xlm(*RUN, "--check") == 1
    assert "tokens identical to stock: no" in capsys.readouterr().err


def test_a_stock_engine_that_does_not_start_is_told(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.backend = Doubting()
    assert bench.xlm(*RUN, "--check") == 1
    assert "no stock engine to compare with. The device has no room." in capsys.readouterr().err


def test_json_holds_everything_that_was_measured(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm(*RUN, "--check", "--json") == 0
    shown = capsys.readouterr()
    measured = json.loads(shown.out)
    assert measured["identical_to_stock"] is True
    assert measured["stock"]["tokens"] == measured["tokens"]
    assert measured["stats"]["steps"]["1"] == 2
    assert not shown.err


def test_json_without_a_check_says_nothing_about_stock(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.xlm(*RUN, "--json")
    assert "stock" not in json.loads(capsys.readouterr().out)


def test_emulated_hardware_is_called_emulated(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.backend = Recording()
    assert bench.xlm(*RUN, "--device", "emulated:8", "--check") == 0
    shown = capsys.readouterr()
    ((plan, options),) = bench.backend.launched
    assert plan.emulated
    assert options.device
    assert options.device.link_bytes_per_s == 8e9
    assert "EMU0 (emulated)" in shown.err
    assert shown.err.count("tokens/s, emulated") == 2


def test_without_an_accelerator_an_emulated_one_is_used(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.machine = fake_machine(accelerator=False)
    assert bench.xlm(*RUN, "--json") == 0
    assert json.loads(capsys.readouterr().out)["emulated"] is True


def test_engines_are_stopped_afterwards(bench: Bench) -> None:
    bench.xlm(*RUN, "--check")
    assert not bench.backend.running()


def test_a_device_that_the_engine_lacks_is_told(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.machine = fake_machine(fake_device(name="CUDA0"))
    assert bench.xlm(*RUN) == 1
    assert "finds FAKE0, not CUDA0" in capsys.readouterr().err


def test_an_engine_that_cannot_be_used_is_told(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.backend = FakeBackend(problem="it is broken")
    assert bench.xlm(*RUN) == 1
    assert "cannot be used: it is broken" in capsys.readouterr().err


def test_without_an_engine_plugin_one_sentence_says_so(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.xlm_without_engines(*RUN) == 1
    assert "No plugin brings an engine" in capsys.readouterr().err


def test_a_plan_from_a_file_is_used_as_it_is(bench: Bench, tmp_path: Path) -> None:
    bench.backend = Recording()
    plan = tiny_plan(MODEL, placement="stream")
    plan.write(tmp_path / "plan.json")
    assert bench.xlm("run", "tiny", "-p", "x", "--plan", str(tmp_path / "plan.json"), "--threads", "2") == 0
    ((used, options),) = bench.backend.launched
    assert used == plan
    assert options.threads == 2


def test_an_emulated_plan_from_a_file_runs_on_the_emulated_device(bench: Bench, tmp_path: Path) -> None:
    plan = tiny_plan(MODEL).model_copy(update={"device": "EMU0", "emulated": True})
    plan.write(tmp_path / "plan.json")
    bench.backend = Recording()
    file = str(tmp_path / "plan.json")
    assert bench.xlm("run", "tiny", "-p", "x", "--plan", file, "--device", "emulated:4") == 0
    ((_, options),) = bench.backend.launched
    assert options.device
    assert options.device.link_bytes_per_s == 4e9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--vram", "6GiB"), "--plan decides"),
        (("--device", "emulated"), "The plan is for FAKE0, not for EMU0"),
    ],
)
def test_options_that_contradict_a_plan_are_refused(
    bench: Bench,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    tiny_plan(MODEL).write(tmp_path / "plan.json")
    assert bench.xlm("run", "tiny", "-p", "x", "--plan", str(tmp_path / "plan.json"), *arguments) == 1
    assert message in capsys.readouterr().err


def test_a_plan_for_another_model_is_refused(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tiny_plan(tiny_model(layers=5)).write(tmp_path / "plan.json")
    assert bench.xlm("run", "tiny", "-p", "x", "--plan", str(tmp_path / "plan.json")) == 1
    assert "another model" in capsys.readouterr().err


def test_a_model_that_does_not_fit_exits_3(bench: Bench) -> None:
    assert bench.xlm("run", "tiny", "-p", "x", "--vram", "10KiB") == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_is_told_to_go_ends_in_order(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as ended, orderly_end():
        os.kill(os.getpid(), number)
        signal.pause()
    assert ended.value.code == 128 + number
    assert signal.getsignal(number) is before


def test_an_empty_prompt_is_refused(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm("run", *SMALL, "-p", " ") == 1
    assert "The prompt is empty." in capsys.readouterr().err


def test_a_check_that_compared_nothing_fails(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = Completion(
        text="", tokens=(), logprobs=(), prompt_tokens=5, prefill_tokens_per_s=1.0, decode_tokens_per_s=1.0
    )
    monkeypatch.setattr("xlm_plugin.testing.FakeEngine.complete", lambda *_, **__: silent)
    assert bench.xlm(*RUN, "--check") != 0
    assert "nothing was compared" in capsys.readouterr().err


def test_what_was_measured_is_kept_beside_what_was_predicted(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLM_CACHE", str(tmp_path))
    assert bench.xlm(*RUN) == 0
    shown = capsys.readouterr().err
    assert "decode: 100.0 tokens/s, " in shown
    assert " were predicted (" in shown
    assert bench.xlm("plan", *SMALL) == 0
    assert "The last run of this model on FAKE0" in capsys.readouterr().out


def test_an_answer_is_given_though_its_speeds_cannot_be_kept(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XLM_CACHE", str(tmp_path / "file"))
    assert bench.xlm(*RUN) == 0
    assert "What was measured is not kept" in capsys.readouterr().err
