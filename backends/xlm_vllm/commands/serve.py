"""``xlm vllm args`` and ``xlm vllm serve``."""

from __future__ import annotations

import os
import shlex
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from xlm_plugin.plan.strategy import Objective

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_vllm.flags import EngineRequest

_COUNT = click.IntRange(1, 2**31 - 1)
_OPTIONS = (
    click.argument("model"),
    click.option("--vram", metavar="SIZE", help="Budget of each device, such as 6GiB."),
    click.option(
        "--plan",
        "plan_file",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Run the plan in FILE, which decides the budget.",
    ),
    click.option(
        "--ctx", type=_COUNT, metavar="TOKENS", help="Longest sequence. [default: the model's, at most 4096]"
    ),
    click.option("--ubatch", type=_COUNT, default=512, metavar="TOKENS", help="Largest step. [default: 512]"),
    click.option("--parallel", type=_COUNT, default=8, metavar="N", help="Sequences at once. [default: 8]"),
    click.option("--kv", metavar="SIZE", help="KV cache. [default: one sequence of full length]"),
    click.option(
        "--tensor-parallel", type=_COUNT, default=1, metavar="N", help="Devices that share it. [default: 1]"
    ),
    click.option(
        "--objective",
        type=click.Choice(get_args(Objective)),
        default="e2e",
        help="What to be quick at: first token, decode, both, many sequences. [default: e2e]",
    ),
    click.option(
        "--link",
        type=click.FloatRange(0, min_open=True),
        metavar="GBPS",
        help="Link of the emulated device of a CPU build. [default: not held back]",
    ),
    click.argument("vllm_arguments", nargs=-1, type=click.UNPROCESSED),
)


def _engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of an engine to ``command``, which gets what they ask for as ``request``."""

    @wraps(command)
    def with_request(vllm_arguments: tuple[str, ...], **values: Any) -> Any:
        from xlm_vllm.preflight import engine_request

        return command(request=engine_request(**values), vllm_arguments=vllm_arguments)

    for option in reversed(_OPTIONS):
        with_request = option(with_request)
    return with_request


@click.command("args")
@_engine_options
def args(request: EngineRequest, vllm_arguments: tuple[str, ...]) -> None:
    """Print the command line that runs MODEL, a Hugging Face folder, within a budget.

    What follows -- goes to vLLM as it is.
    """
    from xlm_vllm.flags import plugin_environment

    environment = " ".join(
        f"{key}={shlex.quote(value)}" for key, value in plugin_environment(os.environ).items()
    )
    click.echo(f"{environment} {shlex.join(request.command(vllm_arguments))}")


@click.command("serve")
@_engine_options
def serve(request: EngineRequest, vllm_arguments: tuple[str, ...]) -> None:
    """Run `vllm serve` for MODEL, a Hugging Face folder, within a budget.

    What follows -- goes to vLLM as it is.
    """
    from xlm_vllm.flags import plugin_environment
    from xlm_vllm.preflight import vllm_program

    program = vllm_program()
    _, *arguments = request.command(vllm_arguments)
    # vLLM stays in our place, so that signals and exit codes are its own.
    os.execve(program, [program, *arguments], {**os.environ, **plugin_environment(os.environ)})
