"""``xlm ollama``."""

from __future__ import annotations

import click

from xlm_plugin.cli import LazyCommand

_MODELS = "xlm_ollama.commands.models"
_INSTALL = "xlm_ollama.commands.install"


@click.group(
    "ollama",
    commands=[
        LazyCommand("install", f"{_INSTALL}:install", "Put the device into Ollama."),
        LazyCommand("uninstall", f"{_INSTALL}:uninstall", "Take it out again."),
        LazyCommand("status", f"{_INSTALL}:status", "Show whether the device is in Ollama."),
        LazyCommand("doctor", f"{_INSTALL}:doctor", "Check all that planned models need."),
        LazyCommand("enable", f"{_MODELS}:enable", "Make a model run under a plan."),
        LazyCommand("disable", f"{_MODELS}:disable", "Undo it."),
        LazyCommand("list", f"{_MODELS}:list_command", "List the models that run under a plan."),
        LazyCommand(
            "modelfile", f"{_MODELS}:modelfile_command", "Turn a Modelfile's lines for xlm into Ollama's."
        ),
    ],
)
def command() -> None:
    """Let Ollama run chosen models within a VRAM budget."""
