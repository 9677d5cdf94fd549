"""``xlm vllm``."""

from __future__ import annotations

import click

from xlm_plugin.cli import LazyCommand

_SERVE = "xlm_vllm.commands.serve"


@click.group(
    "vllm",
    commands=[
        LazyCommand("args", f"{_SERVE}:args", "Print the command line that runs a model within a budget."),
        LazyCommand("serve", f"{_SERVE}:serve", "Run it."),
        LazyCommand("bench", "xlm_vllm.commands.bench:bench", "Measure what a plan costs and hides."),
    ],
)
def command() -> None:
    """Let vLLM run models within a VRAM budget."""
