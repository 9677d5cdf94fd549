"""What llama.cpp b10488 itself asks for, in bytes: ``measured_b10488.csv``.

Read from the engine's own memory breakdown with ``no_alloc`` (its dry run for ``--fit``), as llama-server
starts it, for the described models with all matrices in Q8_0, on a device that computes every operation and
pads like CUDA; SmolLM2 is the file of the demo. The same program gives llama-server's logged compute buffers
to 0.01 MiB (SmolLM2 on the CPU, 40 combinations of context, ubatch, flash attention and slots).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from tests.model.described_models import describe
from xlm_plugin.model import read_model
from xlm_plugin.model.cache import CacheContext, CacheType
from xlm_plugin.testing import tiny_model

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph

_FILE = Path(__file__).with_name("measured_b10488.csv")


@dataclass(frozen=True)
class Measured:
    """A model in a context, and what the engine asked for.

    ``on_cpu`` is the pattern of tensors that were placed on the CPU (``--override-tensor``, no op offload).
    """

    model: str
    context: CacheContext
    on_cpu: str
    device_weight_bytes: int
    context_bytes: int
    compute_bytes: int
    host_weight_bytes: int
    host_compute_bytes: int

    def __str__(self) -> str:
        context = self.context
        extras = [
            f"ub{context.ubatch_tokens}",
            f"x{context.sequences}",
            context.kv_type_k,
            "unified" if context.unified else "",
            "" if context.flash_attention else "no-fa",
            f"cpu:{self.on_cpu}" if self.on_cpu else "",
        ]
        return " ".join([f"{self.model}@{context.tokens}", *filter(None, extras)])


def measured() -> list[Measured]:
    """Return all rows of the file."""
    with _FILE.open(encoding="ascii", newline="") as stream:
        return [_row(row) for row in csv.DictReader(stream)]


@cache
def graph(name: str) -> ModelGraph:
    """Return the model of a row, read from a header over a sparse file."""
    if name == "SmolLM2-135M":
        return tiny_model(
            layers=30,
            embedding_width=576,
            ffn_width=1536,
            heads=9,
            kv_heads=3,
            vocabulary=49152,
            context_tokens=8192,
            tied=True,
        )
    with TemporaryDirectory() as folder:
        return read_model(describe(name, "Q8_0").write(Path(folder) / "model.gguf"))


def _row(row: dict[str, str]) -> Measured:
    kv_type = cast("CacheType", row["kv_type"])
    return Measured(
        row["model"],
        CacheContext(
            tokens=int(row["tokens"]),
            sequences=int(row["sequences"]),
            ubatch_tokens=int(row["ubatch_tokens"]),
            kv_type_k=kv_type,
            kv_type_v=kv_type,
            flash_attention=row["flash_attention"] == "1",
            unified=row["unified"] == "1",
        ),
        row["on_cpu"],
        *(int(row[name]) for name in list(row)[8:]),
    )
