from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING

from xlm_llamacpp.engine import terminal_progress

if TYPE_CHECKING:
    import pytest


def test_without_a_terminal_progress_is_a_few_plain_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal_progress() as progress:
        progress.step("Building")
        for done in range(1, 101):
            progress.advance(done, 100)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == "Building ..."
    assert [line.split(",")[0].strip() for line in lines[1:]] == ["25%", "50%", "75%"]


def test_on_a_terminal_progress_is_a_bar_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "100")
    with terminal_progress() as progress:
        progress.note("waiting")
        progress.step("Building")
        progress.advance(3, 7)
    assert "waiting" in terminal.getvalue()
    assert "7/7" in terminal.getvalue()
