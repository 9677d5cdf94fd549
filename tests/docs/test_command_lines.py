"""Every command that the pages tell a person to type is one."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest

from tests.docs.pages import PAGES, ROOT, blocks, inline_code, name_of, read
from xlm_plugin.cli import LazyCommand, cli
from xlm_plugin.testing import plugin_manager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TARGETS = set(re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE))


@pytest.fixture(autouse=True)
def built_in_commands() -> Iterator[None]:
    from xlm_hooks import plugin as hooks
    from xlm_llamacpp import plugin as llamacpp
    from xlm_ollama import plugin as ollama
    from xlm_vllm import plugin as vllm

    with plugin_manager(hooks, llamacpp, ollama, vllm):
        yield


def typed_lines(page: Path) -> list[list[str]]:
    """Return the words of the ``xlm`` and ``make`` lines that ``page`` tells a person to type."""
    scripts = [block.text for block in blocks(page, "sh")]
    prompts = re.findall(r"^\$ (.+)$", "".join(block.text for block in blocks(page, "console")), re.MULTILINE)
    lines = "\n".join([*scripts, *prompts]).replace("\\\n", " ").splitlines()
    words = [shlex.split(re.sub(r"^(\w+=\S+ )+", "", line), comments=True) for line in lines]
    return [line for line in words if line and line[0] in ("xlm", "make")]


def named_commands(page: Path) -> list[list[str]]:
    """Return the words of the ``xlm`` and ``make`` commands that ``page`` names in its text."""
    found = [shlex.split(code) for code in inline_code(page) if re.match(r"(xlm|make) [a-z]", code)]
    return [words for words in found if "..." not in words]


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """Return the command that ``words`` after ``xlm`` begin with, and the rest of them."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        _, found, words = command.resolve_command(click.Context(command), words)
        assert found is not None
        command = found.load() if isinstance(found, LazyCommand) else found
    return command, words


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_typed_lines_are_accepted(page: Path) -> None:
    for words in typed_lines(page):
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= TARGETS
        else:
            command, arguments = find_command(words[1:])
            command.make_context(" ".join(words), arguments)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_named_commands_and_options_exist(page: Path) -> None:
    for words in named_commands(page):
        if words[0] == "make":
            assert {word for word in words[1:] if "=" not in word} <= TARGETS
        else:
            command, arguments = find_command(words[1:])
            options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
            assert {word for word in arguments if word.startswith("-")} <= options, words


def test_the_commands_of_the_readme_are_found() -> None:
    readme = ROOT / "README.md"
    assert ["make", "demo"] in typed_lines(readme)
    assert ["xlm", "engine", "build"] in typed_lines(readme)
    assert ["xlm", "doctor"] in named_commands(readme)
