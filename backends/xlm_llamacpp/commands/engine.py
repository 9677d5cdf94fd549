"""``xlm engine``: build, list, find and remove engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import click

from xlm_llamacpp.engine import ensure_engine, find_engine, store
from xlm_llamacpp.engine.installed import list_engines
from xlm_llamacpp.engine.recipe import VARIANTS, recipe_for
from xlm_llamacpp.engine.releases import DEFAULT_VERSION
from xlm_llamacpp.engine.toolchain import default_variant
from xlm_plugin.cli._output import out, print_json
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_llamacpp.engine.recipe import Variant

_version = click.option(
    "--version", default=DEFAULT_VERSION, show_default=True, help="The llama.cpp release.", metavar="VERSION"
)
_accelerator = click.Choice(sorted(VARIANTS))


@click.group("engine")
def command() -> None:
    """Build, list, find and remove engines."""


@command.command()
@_version
@click.option(
    "--accelerator",
    type=_accelerator,
    help="What it runs on beside the CPU.  [default: cuda with an NVIDIA device and nvcc, else cpu]",
)
def build(version: str, accelerator: Variant | None) -> None:
    """Build an engine, or what is missing or out of date of it."""
    click.echo(ensure_engine(version, accelerator or default_variant()).root)


@command.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """List the engines in the cache."""
    engines = list_engines()
    if as_json:
        print_json(engines)
        return
    if not engines:
        click.echo("No engine is built yet: xlm engine build.", err=True)
        return
    from rich.table import Table

    table = Table("engine", "ggml", "status", "folder", box=None)
    for engine in engines:
        table.add_row(engine.name, engine.ggml_version, engine.status, str(engine.root))
    out().print(table)


@command.command()
@_version
@click.option(
    "--accelerator",
    type=_accelerator,
    help="What it runs on beside the CPU.  [default: the most capable built]",
)
def path(version: str, accelerator: Variant | None) -> None:
    """Print the folder of an engine's programs."""
    engine = find_engine(version, accelerator)
    if engine is None:
        name = f"{version}-{accelerator}" if accelerator else version
        options = f" --accelerator {accelerator}" if accelerator else ""
        raise EngineError(
            f"The engine {name} is not built, or out of date.", f"Build it with 'xlm engine build{options}'."
        )
    click.echo(engine.server.parent)


@command.command()
@click.argument("names", metavar="ENGINE...", nargs=-1, required=True)
@click.option("--old", is_flag=True, help="Remove only the devices that other versions of xlm built.")
def remove(names: tuple[str, ...], old: bool) -> None:
    """Remove engines by name, such as b10488-cpu."""
    roots = {engine.name: engine.root for engine in list_engines()}
    if unknown := [name for name in names if name not in roots]:
        known = f"There are: {', '.join(roots)}." if roots else "None is built."
        raise EngineError(f"There is no engine '{unknown[0]}'.", known)

    def waiting() -> None:
        click.echo("A build is running; waiting for it ...", err=True)

    with store.cache_errors(), store.build_lock(waiting):
        for name in names:
            if old:
                _remove_old_devices(name, roots[name])
                continue
            left = store.remove_engine(roots[name])
            click.echo(f"Removed {name}.", err=True)
            if left:
                click.echo(f"{roots[name]} stays: it holds {', '.join(left)}, not made by xlm.", err=True)


def _remove_old_devices(name: str, root: Path) -> None:
    version, _, variant = name.rpartition("-")
    current = store.library(root, recipe_for(version, cast("Variant", variant)).device).parent
    old = [folder for folder in store.native_folders(root) if folder != current]
    for folder in old:
        store.remove(folder)
    click.echo(f"Removed {len(old)} old devices of {name}.", err=True)
