"""Documents are read from files alone, and written whole or not at all."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from xlm_plugin import text_files
from xlm_plugin.errors import PlanError
from xlm_plugin.text_files import read_text, write_text

if TYPE_CHECKING:
    from pathlib import Path


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    write_text(tmp_path / "plan", "größe\n", "plan", PlanError)
    assert read_text(tmp_path / "plan", "plan", PlanError) == "größe\n"
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_a_symbolic_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new", "plan", PlanError)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "text", "plan", PlanError)
    reader.join()
    assert got == ["text"]
    assert pipe.is_fifo()


def test_a_failed_write_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "plan").mkdir()
    with pytest.raises(PlanError, match=r"The plan cannot be written to .*plan: Is a directory\."):
        write_text(tmp_path / "plan", "text", "plan", PlanError)
    assert [path.name for path in tmp_path.iterdir()] == ["plan"]


def test_a_device_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(PlanError, match=r"cannot be read: it is not a file\."):
        read_text(tmp_path / "pipe", "plan", PlanError)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(b"\xff")
    with pytest.raises(PlanError, match=r"cannot be read: it is not text\."):
        read_text(tmp_path / "plan", "plan", PlanError)


def test_a_file_far_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_files, "MAX_BYTES", 3)
    (tmp_path / "plan").write_bytes(b"1234")
    with pytest.raises(PlanError, match="it is far too large"):
        read_text(tmp_path / "plan", "plan", PlanError)


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"cannot be read: No such file or directory\."):
        read_text(tmp_path / "missing", "plan", PlanError)
