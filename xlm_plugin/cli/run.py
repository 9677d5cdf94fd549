"""``xlm run``: a prompt under a plan, what was measured, and on request the same prompt without a plan."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xlm_plugin.cli._launch import beside_model, engine_name, orderly_end, planned_from, ready_backend
from xlm_plugin.cli._output import err, print_json
from xlm_plugin.cli._planning import planning_options
from xlm_plugin.errors import EngineError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xlm_plugin.backend import Backend, Completion, Engine, LaunchSpec
    from xlm_plugin.cli._planning import PlanningOptions


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask an engine."""

    prompt: str
    new_tokens: int
    chat: bool

    def put_to(self, engine: Engine, on_text: Callable[[str], None] | None = None) -> Completion:
        """Return the engine's answer."""
        return engine.complete(self.prompt, self.new_tokens, chat=self.chat, on_text=on_text)


@click.command("run")
@click.argument("model")
@click.option("-p", "--prompt", required=True, metavar="TEXT", help="What to continue.")
@click.option("--chat", is_flag=True, help="Put the prompt to the model as a message.")
@click.option(
    "--new-tokens", type=click.IntRange(min=1), default=64, metavar="N", help="At most. [default: 64]"
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Run under the plan in FILE, not under a new one.",
)
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="CPU threads. [default: the cores]")
@click.option("--check", is_flag=True, help="Compare with the stock engine's tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print text and measurements as JSON.")
@planning_options
def command(
    model: str,
    prompt: str,
    chat: bool,
    new_tokens: int,
    plan_file: Path | None,
    threads: int | None,
    check: bool,
    as_json: bool,
    planning: PlanningOptions,
) -> int:
    """Run a prompt on MODEL within a VRAM budget: a .gguf file, a folder or a known name.

    The text goes to stdout; the plan and what was measured go to stderr. With --check the exit code is
    1 where the stock engine's tokens differ.
    """
    from xlm_plugin.backend import LaunchOptions
    from xlm_plugin.cli import _measured
    from xlm_plugin.cli._plan_view import print_plan

    if not prompt.strip():
        raise UsageError("The prompt is empty.", "Give it some text with -p.")
    request = Request(prompt, new_tokens, chat)
    planned = planned_from(model, planning, plan_file)
    if not as_json:
        print_plan(err(), planned.plan, planned.model, speeds=planned.promises_speeds)
    backend = ready_backend(planned)
    options = LaunchOptions(
        threads=threads or planned.host.threads,
        device=planned.device,
        name=engine_name(model),
        extra_arguments=beside_model(model),
    )
    # A streamed answer may lack tokens: what is compared or kept is not streamed.
    show = None if check or as_json else _show
    with orderly_end(), backend.start(backend.launch_spec(planned.plan, planned.model, options)) as engine:
        completion = request.put_to(engine, show)
        stats = backend.control(engine).stats()
    outcomes = _measured.remembered_outcomes(planned, completion, options.threads or 0)
    if not as_json:
        click.echo("" if show else completion.text)
        for line in _measured.measured_lines(planned.device, completion, stats):
            err().print(line)
        for outcome in outcomes if planned.promises_speeds else ():
            err().print(outcome.sentence)
    stock = None
    if check:
        stock = _stock(backend, backend.stock_spec(planned.plan, planned.model, options), request)
        if not completion.tokens + stock.tokens:
            raise EngineError("The answer has no tokens: nothing was compared.", "Give another prompt.")
    same = stock is None or stock.tokens == completion.tokens
    if as_json:
        print_json(_measured.document(planned.device, completion, stats, stock))
    elif stock:
        err().print(f"stock: {_measured.speeds(planned.device, stock)}")
        err().print(f"tokens identical to stock: {'yes' if same else 'no'}", style="bold")
    return 0 if same else 1


def _show(text: str) -> None:
    click.echo(text, nl=False)


def _stock(backend: Backend, spec: LaunchSpec, request: Request) -> Completion:
    try:
        with orderly_end(), backend.start(spec) as engine:
            return request.put_to(engine)
    except EngineError as error:
        raise EngineError(f"There is no stock engine to compare with. {error.message}", error.hint) from None
