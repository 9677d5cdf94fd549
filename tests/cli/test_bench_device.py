"""``xlm bench device`` over a fake engine."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.cli.engines import Bench, make_bench
from xlm_plugin.testing import FakeBackend, fake_device

BENCH = ("bench", "device", "tiny", "--ctx", "512", "--rounds", "1")


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = make_bench(monkeypatch)
    device = replace(fake_device(), emulated=True, name="EMU0")
    made.backend = FakeBackend(device)
    made.machine = replace(made.machine, device=device)
    return made


def test_an_emulated_link_is_measured_at_several_speeds(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.xlm(*BENCH, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["emulated"]
    assert {row["phase"] for row in figures["pipeline"]} == {"prefill", "decode"}
    assert len({row["link_bytes_per_s"] for row in figures["pipeline"]}) == 4


def test_the_ratio_is_the_step_over_the_slower_of_link_and_compute(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.xlm(*BENCH, "--json") == 0
    for row in json.loads(capsys.readouterr().out)["pipeline"]:
        bound = max(row["link_seconds"], row["compute_seconds"])
        assert row["ratio"] == pytest.approx(row["step_seconds"] / bound)


def test_a_link_of_unknown_speed_is_left_out(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    device = replace(fake_device(), link_bytes_per_s=None)
    bench.backend, bench.machine = FakeBackend(device), replace(bench.machine, device=device)
    assert bench.xlm(*BENCH, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["pipeline"] == []
    assert figures["resident"] == {
        "prefill": 1.0,
        "decode": 1.0,
        "rounds": 4,
        "prefill_interval": 0.0,
        "decode_interval": 0.0,
    }


def test_what_is_measured_is_told_before_it_is(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm(*BENCH) == 0
    told = capsys.readouterr().err
    assert "Measuring everything resident against the bare device: round 1 ..." in told
    assert "Measuring streamed at 16 GB/s: starting ..." in told


def test_a_ratio_is_shown_with_its_doubt(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.xlm(*BENCH) == 0
    assert "prefill 1.000 ± 0.000, decode 1.000 ± 0.000 of the bare" in capsys.readouterr().out


def test_people_get_a_table_that_names_the_emulation(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench.xlm(*BENCH) == 0
    shown = capsys.readouterr().out
    assert "EMU0 (emulated)" in shown
    assert "tokens identical to the bare device: yes" in shown


def test_other_tokens_than_the_bare_devices_are_a_failure(bench: Bench) -> None:
    bench.backend = FakeBackend(bench.machine.device, faithful=False)
    assert bench.xlm(*BENCH) == 1
