"""The measuring program, played by a script."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp import measure
from xlm_llamacpp.engine import InstalledEngine
from xlm_plugin.errors import EngineError
from xlm_plugin.machine.profile import MeasurementRequest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REQUEST = MeasurementRequest("MUL_MAT", "Q4_0", (64, 64), 1, 2)
ANSWERS = """
import json, sys
print('{"ready": true}', flush=True)
for line in sys.stdin:
    request = json.loads(line)
    known = request["type"] == "Q4_0"
    print(json.dumps({"seconds": 1e-3 * request["threads"], "spread_seconds": 0.0, "rounds": 3}
                     if known else {"error": "no such type"}), flush=True)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Callable[[str], InstalledEngine]:
    def make(script: str) -> InstalledEngine:
        program = tmp_path / measure.PROGRAM
        program.write_text(f"#!{sys.executable}\n{script}")
        program.chmod(0o755)
        library = tmp_path / "libggml-xlm.so"
        return InstalledEngine("b1", "cpu", tmp_path, tmp_path / "bin" / "llama-server", library, "0")

    return make


def test_an_op_is_measured(engine: Callable[[str], InstalledEngine]) -> None:
    process = measure.MeasuringProcess(engine(ANSWERS), "FAKE0", emulated=False)
    found = process.measure(REQUEST, 0.1)
    process.close()
    assert found is not None
    assert (found.seconds, found.source) == (2e-3, "llama.cpp b1")


def test_what_the_device_lacks_has_no_measurement(engine: Callable[[str], InstalledEngine]) -> None:
    process = measure.MeasuringProcess(engine(ANSWERS), None, emulated=True)
    assert process.measure(MeasurementRequest("MUL_MAT", "Q9", (64, 64)), 0.1) is None
    process.close()


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("""print('{"error": "there is no device"}')""", "Nothing can be measured: there is no device"),
        ("raise SystemExit(3)", "ended while it measured \\(exit code 3\\)"),
    ],
)
def test_a_program_that_cannot_start_is_explained(
    engine: Callable[[str], InstalledEngine], script: str, says: str
) -> None:
    with pytest.raises(EngineError, match=says):
        measure.MeasuringProcess(engine(script), None, emulated=False)


def test_a_program_that_ends_in_the_middle_is_an_error(engine: Callable[[str], InstalledEngine]) -> None:
    process = measure.MeasuringProcess(
        engine("print('{\"ready\": true}', flush=True); input()"), None, emulated=False
    )
    with pytest.raises(EngineError, match="ended while it measured"):
        process.measure(REQUEST, 0.1)
    process.close()


def test_an_engine_without_the_program_is_to_be_built_again(
    engine: Callable[[str], InstalledEngine], tmp_path: Path
) -> None:
    built = engine(ANSWERS)
    (tmp_path / measure.PROGRAM).unlink()
    with pytest.raises(EngineError, match="has no xlm-measure"):
        measure.MeasuringProcess(built, None, emulated=False)
