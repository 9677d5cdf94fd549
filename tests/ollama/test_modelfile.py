from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_ollama import plugin
from xlm_ollama.modelfile import convert
from xlm_ollama.option import Option, read_option
from xlm_plugin.errors import UsageError
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result


@pytest.mark.parametrize(
    "lines",
    [
        "# xlm: vram=6GiB objective=tps priority=2",
        "#xlm: vram=6GiB\n# xlm: objective=tps priority=2",
        'PARAMETER xlm_vram 6GiB\nparameter XLM_objective "tps"\nPARAMETER xlm_priority 2',
    ],
)
def test_lines_for_xlm_become_an_option(lines: str) -> None:
    found = convert(f"FROM qwen3:30b\n{lines}\n")
    assert found.option == Option(6 * GIB, "tps", 2)
    assert found.base == "qwen3:30b"


def test_all_other_lines_stay_and_ollama_accepts_the_rest() -> None:
    rest = '# a comment\nPARAMETER num_ctx 8\nSYSTEM """\nb\n"""\n'
    found = convert(f"FROM a\n# xlm: vram=1GiB\nPARAMETER xlm_priority 1\n{rest}")
    assert found.text == f"FROM a\nADAPTER ./xlm.gguf\n# xlm: vram=1GiB\n{rest}"


def test_converting_twice_changes_nothing() -> None:
    once = convert("FROM a\n# xlm: vram=1GiB\nADAPTER ./mine.gguf\n")
    assert convert(once.text) == once


def test_texts_in_quotes_are_no_lines_for_xlm() -> None:
    found = convert('FROM a\n# xlm: vram=1GiB\nSYSTEM """say\n# xlm: vram=9GiB\nFROM b\n"""\n')
    assert found.option.budget_bytes == GIB
    assert "# xlm: vram=9GiB\nFROM b\n" in found.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# xlm: vram=1GiB\n", "has no FROM line"),
        ("FROM a\n", "has no line for xlm"),
        ("FROM a\n# xlm: vram\n", "'vram' sets nothing"),
        ("FROM a\n# xlm: speed=9\n", "has no setting 'speed'"),
        ("FROM a\n# xlm: vram=6\n", "has no unit"),
        ("FROM a\n# xlm: objective=fast\n", "There is no objective 'fast'"),
        ("FROM a\n# xlm: priority=1000\n", "The priority '1000' is not from -100 to 100"),
    ],
)
def test_what_cannot_be_used_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        convert(text)


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("base", ["tiny", "./tiny.gguf"])
def test_the_command_writes_the_modelfile_and_the_option_beside_it(
    tmp_path: Path, invoke: Callable[..., Result], base: str
) -> None:
    source = tmp_path / "Modelfile"
    source.write_text(f"FROM {base}\n# xlm: vram=6GiB\n")
    result = invoke("ollama", "modelfile", str(source), plugins=(plugin,))
    assert result.exit_code == 0, result.output
    assert "ADAPTER ./xlm.gguf" in (tmp_path / "Modelfile.xlm").read_text()
    assert read_option(tmp_path / "xlm.gguf") == Option(6 * GIB)


@pytest.mark.usefixtures("store")
def test_a_model_that_is_nowhere_leaves_no_file(tmp_path: Path, invoke: Callable[..., Result]) -> None:
    source = tmp_path / "Modelfile"
    source.write_text("FROM ./missing.gguf\n# xlm: vram=6GiB\n")
    result = invoke("ollama", "modelfile", str(source), plugins=(plugin,))
    assert result.exit_code == 1
    assert "which the FROM line names" in result.output
    assert not (tmp_path / "Modelfile.xlm").exists()
    assert not (tmp_path / "xlm.gguf").exists()
