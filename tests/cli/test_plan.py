"""``xlm plan``, from command line to exit code."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from xlm_hooks import plugin as built_in
from xlm_plugin import model as model_package
from xlm_plugin.cli import cli
from xlm_plugin.cli._plan_view import print_plan
from xlm_plugin.errors import ModelError
from xlm_plugin.model import resolve
from xlm_plugin.plan.document import Plan
from xlm_plugin.testing import FakePlugin, fake_device, fake_machine, plugin_manager, tiny_model, tiny_plan
from xlm_profiles import plugin as shipped

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = tiny_model(layers=8, embedding_width=1024, ffn_width=4096, vocabulary=8192, context_tokens=8192)
FITS = ("--ctx", "512", "--vram", "100GiB")
SMALL = ("--ctx", "512", "--vram", "640MiB")


@pytest.fixture
def xlm(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that runs a command line over fakes and returns its exit code."""

    def find(ref: str) -> Path:
        if ref != "tiny":
            raise ModelError(f"There is no model '{ref}'.")
        return Path("tiny.gguf")

    monkeypatch.setattr(resolve, "resolve_model", find)
    monkeypatch.setattr(model_package, "read_model", lambda path: MODEL, raising=False)  # noqa: ARG005

    def run(*arguments: str, machine: Any = None) -> int:
        machine = machine or fake_machine(fake_device())
        with (
            plugin_manager(built_in, shipped, FakePlugin(machine=machine)),
            pytest.raises(SystemExit) as ended,
        ):
            cli.main(["plan", *arguments], prog_name="xlm")
        return int(ended.value.code or 0)

    return run


def test_a_model_that_fits_exits_0_and_shows_where_everything_goes(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", *SMALL) == 0
    shown = capsys.readouterr()
    assert re.search(r"attn +8 +.*8 pin", shown.out)
    assert re.search(r"ffn +8 +.* cpu +.* stream", shown.out)
    assert re.search(r"KV cache +[\d.]+ MiB +█+", shown.out)
    assert re.search(r"budget +640.00 MiB +█{40}", shown.out)
    assert "tokens/s" in shown.out
    assert "Note: Step times are predicted by rules of thumb" in shown.out
    assert shown.err == ""


def test_the_table_names_decode_and_prefill(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    xlm("tiny", *SMALL)
    assert re.search(r"decode +.* to 16 +.*prefill, to 512", capsys.readouterr().out)


def test_json_is_the_plan_document(xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert xlm("tiny", *SMALL, "--json") == 0
    plan = Plan.from_json(capsys.readouterr().out)
    assert plan.budget_bytes == 640 * 2**20
    assert plan.model.fingerprint == MODEL.fingerprint


def test_every_option_reaches_the_context(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--ctx 1024 --parallel 2 --ubatch 128 --kv-type-k q8_0 --kv-type-v bf16 --no-flash-attention"
    assert xlm("tiny", *options.split(), "--vram", "1GB", "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert content["budget_bytes"] == 10**9
    assert content["context"] == {
        "tokens": 1024,
        "sequences": 2,
        "ubatch_tokens": 128,
        "kv_type_k": "q8_0",
        "kv_type_v": "bf16",
        "flash_attention": False,
        "host_kv": True,
    }


def test_the_default_context_is_4096_and_the_default_budget_what_is_free(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", "--json") == 0
    plan = Plan.from_json(capsys.readouterr().out)
    assert (plan.context.tokens, plan.budget_bytes) == (4096, 7 * 2**30)


def test_a_strategy_and_an_objective_can_be_asked_for(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", *SMALL, "--strategy", "static", "--objective", "tps", "--json") == 0
    assert {tier.strategy for tier in Plan.from_json(capsys.readouterr().out).tiers} == {"static"}


def test_what_does_not_fit_exits_3_with_one_sentence_and_what_would(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "plan.json"
    assert xlm("tiny", "--ctx", "8192", "--vram", "1MiB", "--output", str(target)) == 3
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "more than the budget of 1.00 MiB" in shown.err
    assert "needs a budget of at least" in shown.err
    assert not list(tmp_path.iterdir())


def test_the_output_file_holds_the_plan(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "plan.json"
    assert xlm("tiny", *FITS, "--output", str(target)) == 0
    assert Plan.read(target).is_stock
    assert f"The plan is in {target}." in capsys.readouterr().err


def test_an_output_file_in_no_folder_exits_1(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert xlm("tiny", *FITS, "--output", str(tmp_path / "missing" / "plan.json")) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        (("tiny", "--vram", "6"), "has no unit"),
        (("tiny", "--vram", "0GiB"), "is not above zero"),
        (("tiny", "--vram", "-6GiB"), "is not above zero"),
        (("tiny", "--vram", "lots"), "is not a size"),
        (("tiny", "--device", "CUDA9"), "no device 'CUDA9'"),
        (("tiny", "--device", "emulated"), "no memory of its own"),
        (("tiny", "--machine", "abacus"), "no described machine 'abacus'"),
        (("tiny", "--machine", "rtx3090-ddr4", "--device", "CUDA0"), "has its own device"),
        (("tiny", *FITS, "--strategy", "magic"), "no strategy 'magic'"),
        (("tiny", *FITS, "--kv-type-v", "q4_0", "--no-flash-attention"), "needs flash attention"),
        (("other", *FITS), "no model 'other'"),
    ],
)
def test_bad_input_exits_1_with_one_sentence(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], fault: str
) -> None:
    assert xlm(*arguments) == 1
    shown = capsys.readouterr()
    assert fault in shown.err
    assert shown.out == ""
    assert "Traceback" not in shown.err


@pytest.mark.parametrize(
    "option", [("--ctx", "0"), ("--ubatch", "1" + "0" * 29), ("--kv-type-k", "q3"), ("--objective", "speed")]
)
def test_wrong_usage_exits_2(xlm: Callable[..., int], option: tuple[str, str]) -> None:
    assert xlm("tiny", "--vram", "1GiB", *option) == 2


def test_a_context_beyond_the_trained_one_is_warned_about(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", "--vram", "100GiB", "--ctx", "16384", "--device", "emulated") == 0
    assert "Warning: 16384 tokens a sequence are more than the 8192" in capsys.readouterr().err
    assert xlm("tiny", "--vram", "100GiB", "--ctx", "16384", "--parallel", "2", "--device", "emulated") == 0
    assert "Warning" not in capsys.readouterr().err


def test_a_budget_beyond_what_is_free_is_warned_about(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", *FITS) == 0
    assert "Warning: The budget of 100.00 GiB is more than the 8.00 GiB that FAKE0 has free now" in (
        capsys.readouterr().err
    )


def test_without_an_accelerator_the_emulated_one_is_planned_for_and_named(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", *SMALL, machine=fake_machine(accelerator=False)) == 0
    shown = capsys.readouterr().out
    assert "on EMU0 (emulated)" in shown
    assert "EMU0 is emulated" in shown


def test_a_described_machine_needs_no_device_and_is_named(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", "--machine", "rtx3090-ddr4", machine=fake_machine(accelerator=False)) == 0
    shown = capsys.readouterr().out
    assert "on rtx3090-ddr4, " in shown
    assert "budget 23.00 GiB" in shown
    assert "for a described machine, rtx3090-ddr4 (NVIDIA GeForce RTX 3090), with published rates" in shown


def test_a_curve_shows_speed_against_the_budget_and_its_knee(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", "--ctx", "512", "--curve") == 0
    assert re.search(r"MiB .* knee", capsys.readouterr().out)
    assert xlm("tiny", "--ctx", "512", "--curve", "--json") == 0
    curve = json.loads(capsys.readouterr().out)
    assert curve["knee_budget_bytes"] in [point["budget_bytes"] for point in curve["points"]]


def test_the_quickest_ubatch_is_found_on_request(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = {}
    for ubatch in ("128", "256", "512", "1024", "2048", "auto"):
        assert xlm("tiny", "--ctx", "4096", "--vram", "640MiB", "--ubatch", ubatch, "--json") == 0
        plan = Plan.from_json(capsys.readouterr().out)
        prefill = plan.tiers[-1]
        assert prefill.prediction
        steps = 1024 / prefill.new_tokens
        decode = plan.tiers[0].prediction.step_seconds if plan.tiers[0].prediction else 0.0
        seconds[ubatch] = steps * prefill.prediction.step_seconds + 256 * decode
    assert seconds["auto"] == min(seconds.values())
    assert seconds["auto"] < max(seconds.values())


def test_a_budget_that_fits_no_ubatch_is_refused_as_without_auto(xlm: Callable[..., int]) -> None:
    assert xlm("tiny", "--ctx", "4096", "--vram", "1MiB", "--ubatch", "auto") == 3


def test_a_plan_is_explained_in_words_and_as_json(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert xlm("tiny", *SMALL, "--explain") == 0
    shown = capsys.readouterr().out
    assert "The bottleneck is" in shown
    assert "Attention 8 of 8" in shown
    assert "more would hold" in shown
    assert xlm("tiny", *SMALL, "--explain", "--json") == 0
    explanation = json.loads(capsys.readouterr().out)
    assert [phase["new_tokens"] for phase in explanation["phases"]] == [1, 512]
    assert explanation["next_bytes"]["more_bytes"] > 0


def test_a_page_is_written_whole(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "plan.html"
    assert xlm("tiny", *SMALL, "--html", str(target)) == 0
    assert f"The page is {target}." in capsys.readouterr().err
    assert target.read_text().rstrip().endswith("</html>")
    assert xlm("tiny", *SMALL, "--html", str(tmp_path / "missing" / "plan.html")) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_a_plan_without_predictions_is_shown_too() -> None:
    console = Console(width=120, record=True, file=io.StringIO())
    print_plan(console, tiny_plan(MODEL), MODEL)
    assert re.search(r"predicted ms .* \? .* \?", console.export_text())


def test_a_device_in_software_that_was_not_measured_is_promised_no_speed(
    xlm: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    xlm("tiny", *SMALL, "--device", "emulated")
    shown = capsys.readouterr().out
    assert "over the link" in shown
    assert "tokens/s" not in shown
    assert "run 'xlm profile --device EMU0'" in shown
