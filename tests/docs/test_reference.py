"""The reference has every hook, command, option, setting and control command, as the code has them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest

from tests.docs.pages import DOCS, REFERENCE, ROOT, read, reference_builder
from xlm_plugin.testing import plugin_manager

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

NATIVE = ROOT / "backends" / "xlm_llamacpp" / "native"


@pytest.fixture(scope="module")
def builder() -> Iterator[ModuleType]:
    from xlm_hooks import plugin as hooks
    from xlm_llamacpp import plugin as llamacpp
    from xlm_ollama import plugin as ollama
    from xlm_profiles import plugin as profiles
    from xlm_vllm import plugin as vllm

    with plugin_manager(hooks, llamacpp, ollama, profiles, vllm):
        yield reference_builder()


def sources(*folders: str) -> Iterator[str]:
    for folder in folders:
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".cpp", ".hpp"):
                yield file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["reference/hooks.md", "reference/cli.md", "reference/machines.md", "cases.md"]
)
def test_generated_pages_are_up_to_date(builder: ModuleType, name: str) -> None:
    assert read(DOCS / name) == builder.PAGES[name](), "run: make docs"


def test_every_command_and_option_says_what_it_does(builder: ModuleType) -> None:
    silent = {
        f"xlm {name} {option.opts[0]}"
        for name, command in builder.commands()
        for option in command.params
        if isinstance(option, click.Option) and not re.sub(r"\[.*\]", "", option.help or "").strip()
    }
    assert silent == set()
    assert all(command.help for _, command in builder.commands())


def test_every_hook_says_what_it_is_for() -> None:
    from xlm_plugin import hookspecs

    assert all(hook.__doc__ for name, hook in vars(hookspecs).items() if name.startswith("xlm_"))


def test_the_settings_are_those_of_the_code() -> None:
    read_by_code = {
        name
        for text in sources("xlm_plugin", "backends", "hooks", "profiles")
        for name in re.findall(r'"(XLM_[A-Z_]+)"', text)
    }
    read_by_code |= set(
        re.findall(r"^(?:set|option)\((XLM_[A-Z_]+)", read(NATIVE / "CMakeLists.txt"), re.MULTILINE)
    )
    documented = set(re.findall(r"^\| `(XLM_[A-Z_]+)`", read(REFERENCE / "settings.md"), re.MULTILINE))
    assert documented == read_by_code


def test_the_control_commands_are_those_of_the_device() -> None:
    source = (NATIVE / "src" / "commands.cpp").read_text(encoding="utf-8")
    assert first_cells("Commands") == set(re.findall(r'command == "(\w+)"', source))


def test_the_stats_are_those_of_the_device() -> None:
    source = (NATIVE / "src" / "commands.cpp").read_text(encoding="utf-8")
    body = source[source.index("Json stats(") : source.index("Json set_state(")]
    assert first_cells("Stats") == set(re.findall(r'\{"(\w+)", ', body))


def first_cells(title: str) -> set[str]:
    """Return the names in the first column of the protocol page's section ``title``."""
    page = read(REFERENCE / "control-protocol.md")
    section = re.split(r"^## ", page.split(f"## {title}\n")[1], flags=re.MULTILINE)[0]
    return {
        name
        for row in re.findall(r"^\| (`.+?) \|", section, re.MULTILINE)
        for name in re.findall(r"\w+", row)
    }
