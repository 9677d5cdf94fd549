"""Results go to stdout as they are, everything else to stderr."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xlm_plugin.cli import _output
from xlm_plugin.testing import fake_device

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def new_consoles(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("COLUMNS", raising=False)
    _output._console.cache_clear()
    yield
    _output._console.cache_clear()


def test_dataclasses_and_paths_have_a_json_form(capsys: pytest.CaptureFixture[str]) -> None:
    _output.print_json({"device": fake_device(name="X"), "path": Path("a/b")})
    shown = json.loads(capsys.readouterr().out)
    assert shown["device"]["name"] == "X"
    assert shown["path"] == str(Path("a/b"))


def test_other_objects_have_none() -> None:
    with pytest.raises(TypeError, match="set has no JSON form"):
        _output.print_json({1, 2})


def test_text_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    _output.out().print("[bold]x[/bold] :smile: /tmp/[a]")
    assert capsys.readouterr().out == "[bold]x[/bold] :smile: /tmp/[a]\n"


def test_notes_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    _output.err().print("note")
    assert capsys.readouterr() == ("", "note\n")


def test_a_long_line_in_a_pipe_is_wider_than_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _output.out().print("x " * 60)
    assert capsys.readouterr().out.count("\n") == 1


def test_columns_set_the_width(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    _output.out().print("x " * 15)
    assert capsys.readouterr().out.count("\n") == 2
