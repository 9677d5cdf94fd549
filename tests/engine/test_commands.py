from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from xlm_llamacpp.commands.engine import command
from xlm_llamacpp.engine import ensure_engine, find_engine
from xlm_plugin.errors import EngineError, XlmError

if TYPE_CHECKING:
    from pathlib import Path


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(command, arguments)
    if isinstance(result.exception, XlmError):
        raise result.exception
    return result


def test_build_prints_the_engines_folder_on_stdout_and_progress_on_stderr(root: Path) -> None:
    result = run("build", "--accelerator", "cpu")
    assert result.stdout == f"{root}\n"
    assert "Building llama.cpp b10488 (cpu) ..." in result.stderr


def test_path_prints_the_programs_folder(root: Path) -> None:
    ensure_engine()
    assert run("path").stdout == f"{root}/build/bin\n"


def test_path_of_an_engine_that_is_not_built_says_how_to_build_it() -> None:
    with pytest.raises(
        EngineError, match=r"b10488-vulkan is not built.*'xlm engine build --accelerator vulkan'"
    ):
        run("path", "--accelerator", "vulkan")


def test_list_tells_the_state_of_every_engine(root: Path, package: Path) -> None:
    ensure_engine()
    root.with_name("b11434-cpu").mkdir()
    engines = json.loads(run("list", "--json").stdout)
    assert [(engine["name"], engine["status"]) for engine in engines] == [
        ("b10488-cpu", "ready"),
        ("b11434-cpu", "incomplete"),
    ]
    (package / "native" / "device.cpp").touch()
    assert "out of date" in run("list").stdout


def test_an_empty_list_says_how_to_build() -> None:
    result = run("list")
    assert result.stdout == ""
    assert "xlm engine build" in result.stderr
    assert json.loads(run("list", "--json").stdout) == []


def test_remove_takes_the_engine_and_its_folder_away(root: Path) -> None:
    ensure_engine()
    run("remove", "b10488-cpu")
    assert not root.exists()


def test_remove_leaves_what_we_did_not_make(root: Path, tmp_path: Path) -> None:
    ensure_engine()
    theirs = tmp_path / "theirs"
    (root / "build").rename(theirs)
    (root / "build").symlink_to(theirs)
    (root / "notes.txt").touch()
    result = run("remove", "b10488-cpu")
    assert [path.name for path in root.iterdir()] == ["notes.txt"]
    assert theirs.is_dir()
    assert "notes.txt" in result.stderr


@pytest.mark.parametrize("name", ["b10488-cuda", "..", "/tmp"])
def test_remove_knows_only_engines(name: str) -> None:
    ensure_engine()
    with pytest.raises(EngineError, match=r"no engine '.*There are: b10488-cpu\."):
        run("remove", name)


def test_remove_old_takes_only_devices_of_other_versions_away(root: Path, package: Path) -> None:
    old = ensure_engine()
    (package / "native" / "device.cpp").touch()
    new = ensure_engine()
    (root / "native").mkdir()
    assert "Removed 2 old devices of b10488-cpu." in run("remove", "--old", "b10488-cpu").stderr
    assert not old.library.exists()
    assert find_engine() == new
