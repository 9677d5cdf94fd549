"""Writes the reference pages that follow from the code: ``make docs``."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xlm_plugin import hookspecs
from xlm_plugin.cli import LazyCommand, cli
from xlm_plugin.cli._planning import PlanningOptions
from xlm_plugin.plugins import get_plugin_manager

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

DOCS = Path(__file__).parent
ROOT = DOCS.parent

_CORE = Path(hookspecs.__file__).parent
_PLANNING = {field.name for field in fields(PlanningOptions)}

_HOOKS_HEAD = """\
# Hooks

<!-- Made by docs/build_reference.py from xlm_plugin/hookspecs.py: change that, then run `make docs`. -->

A plugin is a module, or any object, whose functions carry `xlm_plugin.hookspecs.hookimpl` and the name
of a hook. It is found by its entry point in the group `xlm_plugin`. Arguments are passed by name: leave
out those that you do not use. [Writing a plugin](../guides/plugins.md) has a complete one.

Plugins are asked from the last loaded to the first; built-in ones are loaded first. Of most hooks all
results count, and a plugin that raises is reported by name and skipped. Where the *first result* that
is not None wins, an `XlmError` goes to the user as it is, and anything else that is raised becomes an
error that names the plugin.
"""

_CLI_HEAD = """\
# Command line

<!-- Made by docs/build_reference.py from the commands themselves: change those, then run `make docs`. -->

MODEL is a `.gguf` file (of a split one, the first), a folder with a Hugging Face model, `demo`, or
`ollama:NAME` for one of Ollama's.
Sizes have a unit: `6GiB` is 6 · 2³⁰ bytes, `6GB` is 6 · 10⁹ bytes.
Results go to stdout, all else to stderr.

| exit code | means |
|---|---|
| 0 | done |
| 1 | an error, told in one sentence; for `xlm run --check`, tokens that differ from stock |
| 2 | wrong usage |
| 3 | it does not fit the budget |
| 130 | ended by Ctrl-C |
"""

_MACHINES_HEAD = """\
# Described machines

<!-- Made by docs/build_reference.py from the machines of all plugins: change those, then run `make docs`. -->

`xlm plan model.gguf --machine NAME --vram 6GiB` plans for one of these instead of this machine, before you
buy it. Each value's source is in `profiles/xlm_profiles/machines`; a plugin adds machines by the hook
[`xlm_machines`](hooks.md#xlm_machines).
"""


def hooks_page() -> str:
    """Return the page about all hooks, by family, and the types in their signatures."""
    source = inspect.getsource(hookspecs)
    module = ast.parse(source)
    functions = {node.lineno: node for node in module.body if isinstance(node, ast.FunctionDef)}
    parts = [_HOOKS_HEAD]
    for number, line in enumerate(source.splitlines(), 1):
        if family := re.match(r"# ([A-Z]\w+): (.+)", line):
            parts.append(f"## {family[1]}\n\n{family[2][0].upper()}{family[2][1:]}\n")
        elif number in functions:
            parts.append(_hook(functions[number], source))
    return "\n".join([*parts, "## Types", "", _table(("type", "in", "is"), _types(module))])


def cli_page() -> str:
    """Return the page about all commands and their options."""
    found = dict(commands())
    shared = [option for option in _options(found["plan"]) if option.name in _PLANNING]
    title = "## Planning options\n\n`plan`, `run` and `serve` have them all.\n\n"
    return "\n".join([_CLI_HEAD, *map(_command, found, found.values()), title + _option_table(shared)])


def machines_page() -> str:
    """Return the page about all machines that a plan can be made for by name."""
    found = [machine for machines in get_plugin_manager().hook.xlm_machines() for machine in machines]
    rows = (
        (
            f"`{machine.name}`",
            machine.title,
            f"{machine.values['device_memory_gib'].value:g} GiB",
            f"{machine.values['link_gb_per_s'].value:g} GB/s"
            if "link_gb_per_s" in machine.values
            else "shared",
        )
        for machine in sorted(found, key=lambda machine: machine.name)
    )
    return f"{_MACHINES_HEAD}\n{_table(('name', 'is', 'device memory', 'link'), rows)}"


def cases_page() -> str:
    """Return the page about public cases, its last column filled in from the tests that name them."""
    files = [file for folder in ("tests", "integration") for file in sorted((ROOT / folder).rglob("*.py"))]
    texts = {file: file.read_text(encoding="utf-8") for file in files}

    def filled(row: re.Match[str]) -> str:
        number = re.compile(rf"(?<![a-z0-9]){row[2]}(?![a-z0-9])", re.IGNORECASE)
        names = [file for file, text in texts.items() if number.search(text)]
        links = (f"[{file.name}](../{file.relative_to(ROOT).as_posix()})" for file in names)
        return f"{row[1]} {', '.join(links) or '*open*'} |"

    page = (DOCS / "cases.md").read_text(encoding="utf-8")
    return re.sub(r"^(\| (C\d\d) .*\|)[^|]*\|$", filled, page, flags=re.MULTILINE)


PAGES: dict[str, Callable[[], str]] = {
    "reference/hooks.md": hooks_page,
    "reference/cli.md": cli_page,
    "reference/machines.md": machines_page,
    "cases.md": cases_page,
}


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command, those of built-in plugins included, under its words after ``xlm``."""
    yield from _commands_of(cli, "")


def _commands_of(group: click.Group, prefix: str) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, LazyCommand):
            command = command.load()
        assert command is not None
        if isinstance(command, click.Group):
            if command.invoke_without_command:
                yield f"{prefix}{name}", command
            yield from _commands_of(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


def _hook(function: ast.FunctionDef, source: str) -> str:
    lines = source.splitlines()[function.lineno - 1 : function.body[0].lineno - 1]
    signature = "\n".join(lines).removeprefix("def ").removesuffix(":")
    decorator = ast.unparse(function.decorator_list[0])
    says = [(ast.get_docstring(function) or "").replace("``", "`")]
    if "firstresult=True" in decorator:
        says.append("The *first result* wins.")
    callers = (file for folder in (_CORE, ROOT / "hooks") for file in folder.rglob("*.py"))
    if not any(f"hook.{function.name}(" in file.read_text(encoding="utf-8") for file in callers):
        says.append("**Not called yet.**")
    return f"### {function.name}\n\n```python\n{signature}\n```\n\n{' '.join(says)}\n"


def _types(module: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield each of our types that the hooks name, its module, and the first sentence about it."""
    for node in ast.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("xlm_plugin."):
            for alias in node.names:
                found = getattr(importlib.import_module(node.module), alias.name)
                says = (inspect.getdoc(found) or "") if isinstance(found, type) else _alternatives(found)
                sentence = re.split(r"(?<=\.)\s", says.replace("``", "`"))[0]
                yield f"`{alias.name}`", f"`{node.module}`", sentence


def _alternatives(literal: object) -> str:
    return f"One of {', '.join(f'`{name}`' for name in getattr(literal, '__args__', ()))}."


def _command(name: str, command: click.Command) -> str:
    arguments = [_metavar(parameter, command) for parameter in command.params if _is_argument(parameter)]
    title = " ".join(["xlm", name, *arguments])
    parts = [f"## {title}", "", inspect.cleandoc(command.help or ""), ""]
    options = _options(command)
    if {option.name for option in options} >= _PLANNING:
        options = [option for option in options if option.name not in _PLANNING]
        parts += ["It also has the [planning options](#planning-options).", ""]
    return "\n".join(parts + ([_option_table(options)] if options else []))


def _options(command: click.Command) -> list[click.Option]:
    return [parameter for parameter in command.params if isinstance(parameter, click.Option)]


def _is_argument(parameter: click.Parameter) -> bool:
    return isinstance(parameter, click.Argument)


def _option_table(options: Iterable[click.Option]) -> str:
    return _table(("option", "does"), ((f"`{_spelling(option)}`", _help(option)) for option in options))


def _spelling(option: click.Option) -> str:
    names = ", ".join(option.opts) + "".join(f" / {name}" for name in option.secondary_opts)
    return names if option.is_flag else f"{names} {_metavar(option, click.Command(None))}"


def _metavar(parameter: click.Parameter, command: click.Command) -> str:
    return parameter.make_metavar(click.Context(command))


def _help(option: click.Option) -> str:
    default = f" [default: {option.default}]" if option.show_default else ""
    required = " [required]" if option.required else ""
    return " ".join(f"{option.help or ''}{default}{required}".split())


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
