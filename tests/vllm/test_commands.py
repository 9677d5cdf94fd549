"""``xlm vllm`` with a vLLM of which only the version is there."""

from __future__ import annotations

import shlex
from importlib.metadata import PackageNotFoundError
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from tests.model.folder import LLAMA, decoder, write_folder
from tests.vllm.plans import a_plan
from xlm_plugin.cli import cli
from xlm_plugin.model import read_model

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result


@pytest.fixture(autouse=True)
def vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, {"vllm": "0.32.0+cpu"})


def install(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    def version(distribution: str) -> str:
        if distribution not in versions:
            raise PackageNotFoundError(distribution)
        return versions[distribution]

    monkeypatch.setattr("xlm_vllm.versions.version", version)
    monkeypatch.delenv("VLLM_PLUGINS", raising=False)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "a model"
    folder.mkdir()
    write_folder(folder, LLAMA, decoder())
    return folder


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["vllm", *map(str, words)])


def test_args_prints_a_command_line_for_the_shell(model: Path) -> None:
    result = run("args", model, "--vram", "20MiB", "--ctx", 256, "--", "--enforce-eager")

    assert result.exit_code == 0, result.output
    words = shlex.split(result.stdout)
    assert words[:4] == ["VLLM_PLUGINS=xlm", "vllm", "serve", str(model)]
    assert words[words.index("--max-model-len") + 1] == "256"
    assert words[-1] == "--enforce-eager"


def test_args_with_a_plan_names_the_file_and_its_digest(model: Path, tmp_path: Path) -> None:
    plan = a_plan()
    own = plan.model.model_copy(update={"fingerprint": read_model(model).fingerprint})
    plan.model_copy(update={"model": own}).write(tmp_path / "plan.json")

    result = run("args", model, "--plan", tmp_path / "plan.json")

    assert result.exit_code == 0, result.output
    assert str(tmp_path / "plan.json") in result.stdout
    assert '"digest":"sha256:' in result.stdout


def test_serve_becomes_vllm_itself(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    calls: list[tuple[str, list[str], dict[str, str]]] = []
    monkeypatch.setattr("os.execve", lambda *call: calls.append(call))

    result = run("serve", model, "--vram", "20MiB", "--ctx", 256)

    assert result.exit_code == 0, result.output
    ((path, words, environment),) = calls
    assert path == words[0] == str(program)
    assert words[1:3] == ["serve", str(model)]
    assert environment["VLLM_PLUGINS"] == "xlm"


@pytest.mark.parametrize(
    ("options", "exit_code", "sentence"),
    [
        ((), 1, "Give a budget, or a plan"),
        (("--vram", "20MiB", "--plan", "x"), 1, "Give a budget, or a plan"),
        (("--vram", "20"), 1, "has no unit"),
        (("--vram", "100KiB"), 3, "before any weights are placed"),
        (("--plan", "missing.json"), 1, "cannot be read"),
        (("--vram", "20MiB", "--", "--max-model-len=7"), 1, "is for xlm to set"),
    ],
)
def test_what_vllm_would_not_start_with_is_told_at_once(
    model: Path, options: tuple[str, ...], exit_code: int, sentence: str
) -> None:
    result = run("args", model, *options)

    assert result.exit_code == exit_code
    assert sentence in result.stderr
    assert not result.stdout


def test_a_plan_for_another_model_is_refused(model: Path, tmp_path: Path) -> None:
    a_plan().write(tmp_path / "plan.json")

    result = run("args", model, "--plan", tmp_path / "plan.json")

    assert result.exit_code == 1
    assert "another model" in result.stderr


def test_a_model_must_be_a_folder(tmp_path: Path) -> None:
    result = run("args", tmp_path / "none", "--vram", "6GiB")

    assert result.exit_code == 1
    assert "There is no folder" in result.stderr


@pytest.mark.parametrize(
    ("versions", "sentence"),
    [({}, "vLLM is not installed"), ({"vllm": "0.17.1"}, "vLLM 0.17.1 is not supported")],
)
def test_a_vllm_that_cannot_do_it_is_named(
    model: Path, monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], sentence: str
) -> None:
    install(monkeypatch, versions)

    result = run("args", model, "--vram", "6GiB")

    assert result.exit_code == 1
    assert sentence in result.stderr
