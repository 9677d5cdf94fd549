"""Putting the device into folders laid out like Ollama's. The engine's library is a stand-in without code."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp import engine
from xlm_llamacpp.engine.releases import RELEASES
from xlm_ollama import health, layout, plugin
from xlm_ollama.install import (
    LIBRARY,
    MANIFEST,
    SETTINGS,
    Installation,
    planner_command,
    reminder,
    state_of,
    uninstall,
)
from xlm_ollama.layout import InstallError, Layout, find_layout

if TYPE_CHECKING:
    from collections.abc import Callable

    from click.testing import Result

    Run = Callable[..., Result]

RELEASE = RELEASES["b10488"]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "built" / LIBRARY
    path.parent.mkdir()
    path.write_bytes(b"\x7fELF device")
    return path


@pytest.fixture
def ollama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Layout:
    root = tmp_path / "ollama" / "lib" / "ollama"
    (root / "cuda_v13").mkdir(parents=True)
    for name in ("llama-server", "libggml-base.so", "cuda_v13/libggml-cuda.so"):
        (root / name).write_bytes(b"stock")
    monkeypatch.setattr(Layout, "ggml_version", lambda self: RELEASE.ggml_version)  # noqa: ARG005
    return Layout(root)


@pytest.fixture
def xlm(invoke: Run, library: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    class Built:
        def __init__(self) -> None:
            self.library = library

    monkeypatch.setattr(engine, "ensure_device", lambda version: version and library)
    monkeypatch.setattr(engine, "find_engine", lambda version: version and Built())
    return lambda *arguments: invoke("ollama", *arguments, plugins=(plugin,))


def content(folder: Path) -> dict[str, str]:
    """Return the digest of every file below ``folder``, and every folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        for path in sorted(folder.rglob("*"))
    }


def test_installing_adds_one_folder_and_changes_nothing_else(ollama: Layout, xlm: Run) -> None:
    before = content(ollama.root)
    result = xlm("install", "--prefix", str(ollama.root))
    assert result.exit_code == 0, result.output
    after = content(ollama.root)
    assert {name: after[name] for name in before} == before
    assert after.keys() - before.keys() == {
        "xlm",
        *(f"xlm/{name}" for name in (LIBRARY, SETTINGS, MANIFEST)),
    }


def test_uninstalling_leaves_the_folder_as_it_was(ollama: Layout, xlm: Run) -> None:
    before = content(ollama.root)
    xlm("install", "--prefix", str(ollama.root))
    assert xlm("uninstall", "--prefix", str(ollama.root)).exit_code == 0
    assert content(ollama.root) == before


def test_the_library_finds_its_planner_and_its_ggml_beside_it(ollama: Layout, xlm: Run) -> None:
    xlm("install", "--prefix", str(ollama.root))
    settings = json.loads((ollama.folder / SETTINGS).read_text())
    assert settings == {"planner": planner_command(), "ggml_version": "0.20.2", "cache": ""}


def test_installing_twice_is_installing_once(ollama: Layout, xlm: Run) -> None:
    xlm("install", "--prefix", str(ollama.root))
    once = content(ollama.root)
    assert xlm("install", "--prefix", str(ollama.root)).exit_code == 0
    assert content(ollama.root) == once


def test_a_dry_run_shows_every_file_and_does_nothing(ollama: Layout, xlm: Run) -> None:
    before = content(ollama.root)
    shown = xlm("install", "--prefix", str(ollama.root), "--dry-run").output
    assert all(f"write {ollama.folder / name}" in shown for name in (LIBRARY, SETTINGS, MANIFEST))
    assert '"ggml_version": "0.20.2"' in shown
    assert content(ollama.root) == before


def test_another_ggml_is_refused(ollama: Layout, xlm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Layout, "ggml_version", lambda self: "0.99.0")  # noqa: ARG005
    result = xlm("install", "--prefix", str(ollama.root))
    assert result.exit_code == 1
    assert "stands on ggml 0.99.0, for which there is no device" in result.output
    assert not ollama.folder.exists()


def test_a_library_that_is_none_says_no_version(ollama: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(InstallError, match="does not say which version of ggml it is"):
        ollama.ggml_version()


def test_an_upgrade_of_ollama_is_noticed(ollama: Layout, xlm: Run) -> None:
    xlm("install", "--prefix", str(ollama.root))
    assert xlm("status", "--prefix", str(ollama.root)).exit_code == 0
    for path in ollama.folder.iterdir():
        path.unlink()
    ollama.folder.rmdir()
    result = xlm("status", "--prefix", str(ollama.root))
    assert result.exit_code == 1
    assert "removes it with each upgrade" in result.output


def test_who_has_enabled_models_is_reminded_of_an_upgrade(
    ollama: Layout, xlm: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xlm_ollama.install.find_layout", lambda: ollama)
    assert reminder() == "xlm is not in Ollama: an upgrade removes it. Run 'xlm ollama install'."
    xlm("install", "--prefix", str(ollama.root))
    assert reminder() is None


@pytest.mark.parametrize("name", [LIBRARY, SETTINGS])
def test_a_changed_file_is_noticed(ollama: Layout, xlm: Run, name: str) -> None:
    xlm("install", "--prefix", str(ollama.root))
    (ollama.folder / name).write_bytes(b"changed")
    assert state_of(ollama) == ("damaged", f"{ollama.folder / name} is not as it was written.")


def test_a_folder_of_somebody_else_is_left_alone(ollama: Layout, xlm: Run) -> None:
    ollama.folder.mkdir()
    (ollama.folder / "theirs").touch()
    for command in ("install", "uninstall"):
        result = xlm(command, "--prefix", str(ollama.root))
        assert result.exit_code == 1
        assert "was not made by xlm: it holds theirs" in result.output
    assert [path.name for path in ollama.folder.iterdir()] == ["theirs"]


def test_what_others_put_beside_ours_stays(ollama: Layout, xlm: Run) -> None:
    xlm("install", "--prefix", str(ollama.root))
    (ollama.folder / "theirs").touch()
    assert "it holds theirs, not made by xlm" in xlm("uninstall", "--prefix", str(ollama.root)).output
    assert [path.name for path in ollama.folder.iterdir()] == ["theirs"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_to_is_said_in_a_sentence(ollama: Layout, xlm: Run) -> None:
    ollama.root.chmod(0o555)
    result = xlm("install", "--prefix", str(ollama.root))
    ollama.root.chmod(0o755)
    assert result.exit_code == 1
    assert "cannot be written to: Permission denied" in result.output
    assert "sudo env XLM_CACHE=" in result.output


@pytest.mark.parametrize("failing", [LIBRARY, SETTINGS, MANIFEST])
def test_an_installation_that_fails_leaves_nothing(
    ollama: Layout, library: Path, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    before = content(ollama.root)
    installation = Installation.of(ollama, library, RELEASE)
    replace = Path.replace

    def failing_replace(self: Path, target: Path) -> Path:
        if target.name == failing:
            raise PermissionError(13, "Permission denied")
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", failing_replace)
    with pytest.raises(InstallError, match="cannot be written to: Permission denied"):
        installation.write()
    assert content(ollama.root) == before


def test_a_killed_installation_is_no_device_and_can_be_undone(ollama: Layout, library: Path) -> None:
    before = content(ollama.root)
    installation = Installation.of(ollama, library, RELEASE)
    ollama.folder.mkdir()
    (ollama.folder / "unfinished.manifest.json").write_bytes(installation.files[MANIFEST])
    assert state_of(ollama)[0] == "not installed"
    assert uninstall(ollama) == []
    assert content(ollama.root) == before


@pytest.mark.parametrize("below", ["", "lib/ollama"])
def test_a_prefix_is_ollamas_root_or_the_folder_itself(ollama: Layout, below: str) -> None:
    assert find_layout(ollama.root.parents[1] / below) == ollama


def test_ollama_is_found_by_its_program(ollama: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    program = ollama.root.parents[1] / "bin" / "ollama"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_layout() == ollama


def test_a_prefix_without_ollama_is_said(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=r"There is no llama-server of Ollama's in"):
        find_layout(tmp_path)


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_other_systems_are_told_that_there_is_no_device(
    ollama: Layout, xlm: Run, monkeypatch: pytest.MonkeyPatch, system: str
) -> None:
    monkeypatch.setattr(layout.platform, "system", lambda: system)
    result = xlm("install", "--prefix", str(ollama.root))
    assert result.exit_code == 1
    assert f"On {system} there is no device for Ollama yet" in result.output


def test_the_doctor_asks_the_planner(ollama: Layout, xlm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    xlm("install", "--prefix", str(ollama.root))
    result = xlm("doctor", "--prefix", str(ollama.root))
    assert result.exit_code == 0, result.output
    (ollama.folder / SETTINGS).write_text('{"planner": ["/bin/false"]}')
    checks = health.all_checks(ollama.root)
    assert [check.name for check in checks if check.status == "fail"] == ["device"]


def test_the_doctor_sees_a_planner_that_is_gone(
    ollama: Layout, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    monkeypatch.setattr("xlm_ollama.install.planner_command", lambda: ["/nowhere/python"])
    Installation.of(ollama, library, RELEASE).write()
    checks = {check.name: check for check in health.all_checks(ollama.root)}
    assert checks["planner"].found == "the planner does not answer"


def test_the_doctor_sees_that_the_service_cannot_reach_the_planner(
    ollama: Layout, xlm: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    xlm("install", "--prefix", str(ollama.root))
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr(health.sys, "executable", str(closed / "python"))
    service = tmp_path / "ollama.service"
    service.touch()
    checks = {check.name: check for check in health.all_checks(ollama.root, service)}
    assert f"{closed} is closed to other users" in checks["service"].found
