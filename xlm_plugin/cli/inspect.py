"""``xlm inspect``: what a model is made of, and what it takes in a context."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import click

from xlm_plugin.cli._output import out, print_json
from xlm_plugin.cli._planning import DEFAULT_CONTEXT_TOKENS
from xlm_plugin.model.cache import CacheType

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph

_CACHE_TYPE = click.Choice(get_args(CacheType))
_COUNT = click.IntRange(min=1)


@click.command("inspect")
@click.argument("model")
@click.option(
    "--ctx", type=_COUNT, metavar="TOKENS", help="Context of all sequences together. [default: 4096]"
)
@click.option("--kv-type-k", type=_CACHE_TYPE, default="f16", help="Type of cached keys. [default: f16]")
@click.option("--kv-type-v", type=_CACHE_TYPE, default="f16", help="Type of cached values. [default: f16]")
@click.option("--ubatch", type=_COUNT, default=512, metavar="TOKENS", help="Largest step. [default: 512]")
@click.option("--parallel", type=_COUNT, default=1, metavar="N", help="Sequences at once. [default: 1]")
@click.option("--flash-attention/--no-flash-attention", default=True, help="Fused attention. [default: on]")
@click.option("--mtp", is_flag=True, help="Count the blocks that draft several tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(
    model: str,
    ctx: int | None,
    kv_type_k: CacheType,
    kv_type_v: CacheType,
    ubatch: int,
    parallel: int,
    flash_attention: bool,
    mtp: bool,
    as_json: bool,
) -> None:
    """Show what MODEL is made of and takes: a .gguf file, a folder or a known name."""
    from xlm_plugin.model import read_model
    from xlm_plugin.model.resolve import resolve_model
    from xlm_plugin.plan.document import PlannedContext
    from xlm_plugin.plan.memory import estimate

    graph = read_model(resolve_model(model), use_mtp=mtp)
    context = PlannedContext(
        tokens=ctx or min(graph.shape.context_tokens or DEFAULT_CONTEXT_TOKENS, DEFAULT_CONTEXT_TOKENS),
        sequences=parallel,
        ubatch_tokens=ubatch,
        kv_type_k=kv_type_k,
        kv_type_v=kv_type_v,
        flash_attention=flash_attention,
    )
    memory = estimate(graph, context, crossing=False)
    _warn_beyond_training(graph, context.tokens // context.sequences)
    from xlm_plugin.cli._inspect_view import inspection, print_inspection

    if as_json:
        print_json(inspection(graph, context, memory))
    else:
        print_inspection(out(), graph, context, memory)


def _warn_beyond_training(model: ModelGraph, tokens: int) -> None:
    trained = model.shape.context_tokens
    if 0 < trained < tokens:
        click.echo(
            f"Warning: {tokens} tokens a sequence are more than the {trained} it was trained with.",
            err=True,
        )
