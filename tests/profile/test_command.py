"""``xlm profile`` over a measuring plugin whose answers are known."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.profile.rows import DATE
from xlm_hooks import plugin as built_in
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.machine.profile import Measurement
from xlm_plugin.testing import FakePlugin, fake_device, fake_machine

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from xlm_plugin.machine.profile import MeasurementRequest

    Xlm = Callable[..., Result]


class Meter:
    """Answers each request at once, and interrupts after ``patience`` of them."""

    def __init__(self) -> None:
        self.asked: list[MeasurementRequest] = []
        self.patience = 10**6
        self.seconds = 1e-4

    @hookimpl
    def xlm_measure(self, request: MeasurementRequest) -> list[Measurement]:
        if len(self.asked) >= self.patience:
            raise KeyboardInterrupt
        self.asked.append(request)
        return [Measurement(request, self.seconds, 1e-6, "a meter", DATE)]


@pytest.fixture
def meter() -> Meter:
    return Meter()


@pytest.fixture
def xlm(invoke: Callable[..., Result], meter: Meter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Xlm:
    monkeypatch.setenv("XLM_CACHE", str(tmp_path / "cache"))
    machine = fake_machine(fake_device(name="METER0"))

    def run(*arguments: str) -> Result:
        return invoke(*arguments, plugins=(built_in, FakePlugin(machine=machine), meter))

    return run


def test_a_profile_is_measured_and_kept(xlm: Xlm, meter: Meter) -> None:
    assert xlm("profile").exit_code == 0
    document = json.loads(xlm("profile", "show", "--json").output)
    assert document["format"] == "xlm.profile/1"
    assert len(document["rows"]) >= len(meter.asked)


def test_what_is_measured_is_not_measured_again_unless_asked(xlm: Xlm, meter: Meter) -> None:
    xlm("profile")
    first = len(meter.asked)
    assert "measured already" in xlm("profile").output
    assert len(meter.asked) == first
    xlm("profile", "--again")
    assert len(meter.asked) == 2 * first


def test_an_interrupted_profile_keeps_what_is_done_and_goes_on_from_there(xlm: Xlm, meter: Meter) -> None:
    meter.patience = 7
    assert xlm("profile").exit_code != 0
    assert len(json.loads(xlm("profile", "show", "--json").output)["rows"]) == 7
    meter.patience = 10**6
    xlm("profile")
    assert len(meter.asked) == len(set(meter.asked))


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e9, float("nan")])
def test_times_that_no_machine_takes_are_not_kept(xlm: Xlm, meter: Meter, seconds: float) -> None:
    meter.seconds = seconds
    xlm("profile")
    rows = json.loads(xlm("profile", "show", "--json").output)["rows"]
    assert {row[0] for row in rows} <= {"DISK_READ"}


def test_a_stored_profile_that_was_cut_short_is_refused_until_measured_again(
    xlm: Xlm, tmp_path: Path
) -> None:
    xlm("profile")
    (path,) = (tmp_path / "cache" / "profiles").iterdir()
    path.write_text(path.read_text()[:500])
    assert xlm("profile").exit_code == 1
    assert xlm("profile", "--again").exit_code == 0
    assert xlm("profile", "show").exit_code == 0


def test_an_exported_profile_can_be_imported(xlm: Xlm, tmp_path: Path) -> None:
    xlm("profile")
    assert xlm("profile", "export", str(tmp_path / "mine.json")).exit_code == 0
    assert xlm("profile", "import", str(tmp_path / "mine.json")).exit_code == 0


def test_the_profile_of_another_machine_is_not_imported(xlm: Xlm, tmp_path: Path) -> None:
    xlm("profile")
    path = tmp_path / "theirs.json"
    xlm("profile", "export", str(path))
    path.write_text(path.read_text().replace("METER0", "THEIRS0"))
    result = xlm("profile", "import", str(path))
    assert result.exit_code == 1


def test_what_an_engine_printed_can_be_imported(xlm: Xlm, tmp_path: Path) -> None:
    path = tmp_path / "perf.txt"
    path.write_text(PERF)
    assert xlm("profile", "import", str(path)).exit_code == 0
    rows = json.loads(xlm("profile", "show", "--json").output)["rows"]
    assert [row[:6] for row in rows] == [
        ["FLASH_ATTN_EXT", "F16", [128, 32, 8, 4096], 1, 4, "device"],
        ["MUL_MAT", "Q4_0", [14336, 4096], 1, 4, "device"],
        ["MUL_MAT_ID", "Q4_K", [2048, 768, 128, 8], 32, 4, "host"],
    ]


def test_profiles_of_one_machine_are_merged_and_compared(xlm: Xlm, tmp_path: Path) -> None:
    xlm("profile")
    first, second = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    xlm("profile", "export", first)
    assert xlm("profile", "merge", first, first, "-o", second).exit_code == 0
    assert "1.00" in xlm("profile", "diff", first, second).output


@pytest.mark.parametrize("text", ["", "{}", "{", '{"format": "xlm.profile/9"}'])
def test_files_that_are_no_profile_are_refused_in_a_sentence(xlm: Xlm, tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    result: Any = xlm("profile", "import", str(path))
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_nothing_is_shown_of_a_machine_that_was_not_measured(xlm: Xlm) -> None:
    assert xlm("profile", "show").exit_code == 1


_RUNS = "852 runs -  1180.29 us/run - 117.44 MFLOP/run"
PERF = f"""\
Backend 1/2: CUDA0
  Device description: a device
  MUL_MAT(type_a=q4_0,type_b=f32,m=4096,n=1,k=14336,bs=[1,1],nr=[1,1]):      {_RUNS}
  MUL_MAT(type_a=f16,type_b=f32,m=16,n=1,k=256,bs=[2,3],nr=[1,1]):           {_RUNS}
  FLASH_ATTN_EXT(hsk=128,hsv=128,nh=8,nr23=[4,1],kv=4096,nb=1,mask=1,type_K=f16,type_V=f16): {_RUNS}
Backend 2/2: CPU
  MUL_MAT_ID(type_a=q4_K,type_b=f32,n_mats=128,n_used=8,b=0,m=768,n=32,k=2048): {_RUNS}
"""
