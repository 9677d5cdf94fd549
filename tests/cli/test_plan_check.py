"""``xlm plan --check``: the measured winner is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.cli.engines import Bench, make_bench
from xlm_plugin import model as model_package
from xlm_plugin.plan.document import Plan
from xlm_plugin.testing import FakeBackend, tiny_model
from xlm_plugin.testing.engine import FakeEngine

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.backend import Completion, LaunchSpec

LARGE = tiny_model(layers=8, embedding_width=1024, ffn_width=4096, vocabulary=8192, context_tokens=8192)
CHECK = ("plan", "tiny", "--ctx", "512", "--vram", "640MiB", "--check")


class _Timed(FakeEngine):
    """Is quick under plans of one strategy and slow under all others."""

    quick = "static"
    speed = 1.0

    def complete(self, prompt: str, new_tokens: int, **how: object) -> Completion:
        completion = super().complete(prompt, new_tokens, **how)  # type: ignore[arg-type]
        strategies = {tier.strategy for tier in self.plan.tiers} if self.plan else set()
        speed = self.speed * (10.0 if self.quick in strategies else 1.0)
        return replace(completion, prefill_tokens_per_s=speed, decode_tokens_per_s=speed)


class _Backend(FakeBackend):
    engine = _Timed

    def start(self, spec: LaunchSpec) -> FakeEngine:
        text = next(iter(spec.files.values()))
        engine = self.engine(Plan.from_json(text), spec.url)
        self.engines.append(engine)
        return engine


class _Silent(_Timed):
    speed = 0.0


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = make_bench(monkeypatch)
    monkeypatch.setattr(model_package, "read_model", lambda path: LARGE, raising=False)  # noqa: ARG005
    made.backend = _Backend(made.machine.device)
    return made


def test_the_plan_that_the_engine_runs_quicker_is_kept(
    bench: Bench, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "plan.json"
    assert bench.xlm(*CHECK, "--output", str(target)) == 0
    assert {tier.strategy for tier in Plan.read(target).tiers} == {"static"}
    shown = capsys.readouterr().err
    assert "static: " in shown
    assert "measured, " in shown
    assert ", kept" in shown


def test_two_plans_are_tried_and_every_engine_is_stopped(bench: Bench) -> None:
    assert bench.xlm(*CHECK) == 0
    assert len(bench.backend.engines) == 2  # type: ignore[attr-defined]
    assert bench.backend.running() == []


def test_where_all_fits_there_is_nothing_to_try(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm("plan", "tiny", "--ctx", "512", "--vram", "100GiB", "--check") == 0
    assert "only one plan" in capsys.readouterr().err
    assert bench.backend.engines == []  # type: ignore[attr-defined]


def test_an_engine_that_does_not_say_its_speed_is_no_judge(
    bench: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_Backend, "engine", _Silent)
    assert bench.xlm(*CHECK) == 1
    assert "does not say how fast" in capsys.readouterr().err
    assert bench.backend.running() == []


def test_a_described_machine_runs_nothing(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm(*CHECK, "--machine", "rtx3090-ddr4") == 1
    assert "runs nothing" in capsys.readouterr().err
    assert bench.backend.engines == []  # type: ignore[attr-defined]
