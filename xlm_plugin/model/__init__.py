"""What runs: the shard graph of a model, read from GGUF files or Hugging Face folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.graph import ModelGraph


def read_model(path: Path, use_mtp: bool = False) -> ModelGraph:
    """Return the shard graph of the model at ``path``: a GGUF file, any part of a split one, or a
    Hugging Face folder.

    Only headers are read, never weights. ``use_mtp`` counts blocks for multi-token prediction as used.
    Raises ModelError with one sentence for whatever is wrong with the files.
    """
    # The readers need gguf and numpy, which cost more to import than a command that reads nothing may take.
    from xlm_plugin.model.reader import read

    return read(path, use_mtp)
