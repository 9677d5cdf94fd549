"""``xlm ollama enable``, ``disable``, ``list`` and ``modelfile``."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import click

from xlm_ollama.names import ModelName
from xlm_ollama.option import PRIORITIES, Option
from xlm_plugin.cli._output import out, print_json
from xlm_plugin.plan.strategy import Objective
from xlm_plugin.units import parse_bytes

_model = click.argument("model", metavar="MODEL")


@click.command()
@_model
@click.option("--as", "as_name", metavar="NAME", help="The new model's name.  [default: MODEL with -xlm]")
@click.option(
    "--vram", default="auto", metavar="SIZE", help="Budget, such as 6GiB. [default: what is free at start]"
)
@click.option(
    "--objective",
    type=click.Choice(get_args(Objective)),
    default="e2e",
    help="What to be quick at: first token, decode, both, many sequences. [default: e2e]",
)
@click.option(
    "--priority",
    type=click.IntRange(PRIORITIES[0], PRIORITIES[-1]),
    default=0,
    metavar="N",
    help="The higher one stays when models want the same memory. [default: 0]",
)
@click.option(
    "--ctx",
    type=click.IntRange(min=1),
    metavar="TOKENS",
    help="Context, as num_ctx of the new model. The plan is then made now, not at the first start.",
)
def enable(
    model: str,
    as_name: str | None,
    vram: str,
    objective: Objective,
    priority: int,
    ctx: int | None,
) -> None:
    """Make a model that is MODEL under a plan. MODEL itself stays as it is."""
    from xlm_ollama.client import OllamaServer
    from xlm_ollama.enabled import enable as make
    from xlm_ollama.enabled import shown
    from xlm_ollama.foresight import check_budget

    option = Option(None if vram == "auto" else parse_bytes(vram), objective, priority)
    base_name = ModelName.parse(model)
    name = ModelName.parse(as_name) if as_name else base_name.with_option()
    server = OllamaServer()
    base = shown(base_name, server.show(base_name))
    for remark in check_budget(base, option, ctx):
        click.echo(remark, err=True)
    make(server, base, name, option, ctx)
    click.echo(f"'{name}' is '{base_name}' with {option}. Run it: ollama run {name}", err=True)
    click.echo(f"Undo: xlm ollama disable {name}", err=True)
    _remind()


@click.command()
@_model
def disable(model: str) -> None:
    """Remove the model that 'xlm ollama enable' made: MODEL, or the one made of MODEL."""
    from xlm_ollama.client import OllamaServer
    from xlm_ollama.enabled import disable as remove

    click.echo(f"Removed '{remove(OllamaServer(), ModelName.parse(model))}'.", err=True)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """List the models that run under a plan."""
    from rich.table import Table

    from xlm_ollama.client import OllamaServer
    from xlm_ollama.enabled import enabled_models

    models = enabled_models(OllamaServer())
    if as_json:
        print_json([{"name": str(model.name), "option": model.option} for model in models])
        return
    if not models:
        click.echo("No model is enabled yet: xlm ollama enable MODEL --vram 6GiB.", err=True)
        return
    _remind()
    table = Table("model", "made of", "option", box=None)
    for model in models:
        option = model.option
        table.add_row(str(model.name), option.base if option else "?", str(option or "damaged"))
    out().print(table)


@click.command("modelfile")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write what Ollama accepts to FILE, and the option beside it.  [default: FILE with .xlm]",
)
def modelfile_command(file: Path, output: Path | None) -> None:
    """Turn the lines for xlm in a Modelfile into what Ollama accepts.

    Such a line is '# xlm: vram=6GiB' or 'PARAMETER xlm_vram 6GiB'.
    """
    from xlm_ollama.architecture import architecture_of
    from xlm_ollama.modelfile import OPTION_FILE, convert
    from xlm_ollama.option import write_option
    from xlm_plugin.errors import UsageError
    from xlm_plugin.text_files import read_text, write_text

    found = convert(read_text(file, "Modelfile", UsageError))
    target = output or file.with_name(f"{file.name}.xlm")
    write_option(found.option, architecture_of(found.base, file.parent), target.with_name(OPTION_FILE))
    write_text(target, found.text, "Modelfile", UsageError)
    click.echo(f"Next: ollama create NAME -f {target}", err=True)


def _remind() -> None:
    from xlm_ollama.install import reminder

    if reminded := reminder():
        click.echo(reminded, err=True)
