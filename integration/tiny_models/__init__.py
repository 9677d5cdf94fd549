"""Random models of many architectures, small enough to be made by a test, with a real tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.tiny_models import (
    deepseek2,
    gemma3,
    glm4moe,
    gpt_oss,
    llama,
    nemotron_h_moe,
    phi3,
    qwen3moe,
    qwen35,
)

if TYPE_CHECKING:
    from pathlib import Path

_FILL = {
    "llama": llama.fill,
    "phi3": phi3.fill,
    "gemma3": gemma3.fill,
    "qwen3moe": qwen3moe.fill,
    "gpt-oss": gpt_oss.fill,
    "deepseek2": deepseek2.fill,
    "glm4moe": glm4moe.fill,
    "qwen35": qwen35.fill,
    "nemotron_h_moe": nemotron_h_moe.fill,
}
ARCHITECTURES = tuple(_FILL)


def write_tiny_model(architecture: str, path: Path, tokenizer_from: Path) -> None:
    """Write the model of ``architecture`` to ``path``, with the tokenizer of a real GGUF file."""
    part = path.with_suffix(".part")
    _FILL[architecture](part, tokenizer_from).close()
    part.replace(path)
