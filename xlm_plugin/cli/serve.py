"""``xlm serve``: a model behind an HTTP endpoint, under a plan, until it is told to end."""

from __future__ import annotations

import json
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._launch import beside_model, engine_name, orderly_end, planned_from, ready_backend
from xlm_plugin.cli._output import err
from xlm_plugin.cli._planning import planning_options

if TYPE_CHECKING:
    from xlm_plugin.backend import Engine
    from xlm_plugin.cli._planning import Planned, PlanningOptions

_OPEN = "Whoever reaches {host} can use this model. Ask for a key with '-- --api-key KEY'."


@click.command("serve")
@click.argument("model")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen. [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8080,
    metavar="N",
    help="0 is any free one. [default: 8080]",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Serve under the plan in FILE, not under a new one.",
)
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads. [default: the cores]")
@planning_options
@click.argument("engine_arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    model: str,
    host: str,
    port: int,
    plan_file: Path | None,
    threads: int | None,
    engine_arguments: tuple[str, ...],
    planning: PlanningOptions,
) -> None:
    """Serve MODEL within a VRAM budget: a .gguf file, a folder or a known name.

    What follows -- goes to the engine as it is.
    """
    from xlm_plugin.backend import LaunchOptions
    from xlm_plugin.cli._plan_view import print_plan

    planned = planned_from(model, planning, plan_file)
    if not _is_loopback(host):
        click.echo(f"Warning: {_OPEN.format(host=host)}", err=True)
    print_plan(err(), planned.plan, planned.model, speeds=planned.promises_speeds)
    backend = ready_backend(planned)
    options = LaunchOptions(
        host,
        port,
        threads or planned.host.threads,
        planned.device,
        (*beside_model(model), *engine_arguments),
        engine_name(model),
    )
    spec = backend.launch_spec(planned.plan, planned.model, options)
    try:
        with orderly_end(), backend.start(spec) as engine:
            click.echo(engine.url)
            _print_usage(engine, planned)
            engine.wait()
    except KeyboardInterrupt:
        click.echo("Ended.", err=True)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _print_usage(engine: Engine, planned: Planned) -> None:
    question = json.dumps({"messages": [{"role": "user", "content": "Hello"}]})
    header = "Content-Type: application/json"
    emulated = " on an emulated accelerator" if planned.device.emulated else ""
    for line in (
        f"{planned.model.name} answers there{emulated}, by OpenAI's API below /v1. Ctrl-C ends it.",
        f"Ask it:   curl {engine.url}/v1/chat/completions -H '{header}' -d '{question}'",
        f"Its VRAM: xlm stats {engine.pid}, xlm budget {engine.pid} SIZE",
    ):
        click.echo(line, err=True)
