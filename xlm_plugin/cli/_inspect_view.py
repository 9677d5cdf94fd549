"""A model and its memory as people and programs read them."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.table import Table

from xlm_plugin.plan.breakdown import BreakdownRow, format_breakdown, host_row
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.document import PlannedContext
    from xlm_plugin.plan.memory import MemoryEstimate


def inspection(model: ModelGraph, context: PlannedContext, memory: MemoryEstimate) -> dict[str, Any]:
    """Return everything as one object; sizes are in bytes."""
    return {
        "name": model.name,
        "architecture": model.architecture,
        "format": model.format,
        "files": [str(file) for file in model.files],
        "fingerprint": model.fingerprint,
        "generic": model.generic,
        "parameters": model.parameters,
        "file_bytes": model.file_bytes,
        "weight_bytes": model.weight_bytes,
        "device_weight_bytes": model.device_weight_bytes,
        "host_weight_bytes": model.host_weight_bytes,
        "second_copy_bytes": model.second_copy_bytes,
        "unused_bytes": model.unused_bytes,
        "layers": model.shape.layers,
        "shape": asdict(model.shape),
        "context": context.model_dump(),
        "kv_bytes": memory.kv_bytes,
        "window_kv_bytes": memory.window_kv_bytes,
        "kv_bytes_per_token": _kv_bytes_per_token(model, context),
        "state_bytes": memory.state_bytes,
        "state_bytes_per_sequence": model.cache.state_bytes_per_sequence,
        "compute_bytes": memory.compute_bytes,
        "compute": asdict(memory.compute),
        "fixed_bytes": memory.fixed_bytes,
        "device_bytes": memory.device_bytes,
        "shards": [_described(shard) for shard in model.shards],
        "notes": list(model.notes),
    }


def print_inspection(
    console: Console, model: ModelGraph, context: PlannedContext, memory: MemoryEstimate
) -> None:
    """Print the shards by kind, what a context takes and the sum in llama.cpp's layout."""
    console.print(
        f"{model.name} ({model.architecture}, {model.parameters / 1e9:.2f} B parameters, "
        f"{model.shape.layers} layers, trained for {model.shape.context_tokens} tokens)",
        style="bold",
    )
    console.print(_shards(model))
    console.print(_context(model, context, memory))
    device = BreakdownRow(
        "device, everything resident",
        model_bytes=memory.small_weight_bytes + memory.movable_bytes + memory.projector_bytes,
        context_bytes=memory.kv_bytes + memory.state_bytes,
        compute_bytes=memory.compute_bytes,
    )
    console.print(format_breakdown([device, host_row(memory)]))
    for note in _notes(model):
        console.print(f"Note: {note}")


def _shards(model: ModelGraph) -> Table:
    table = Table(show_edge=False)
    table.add_column("shards")
    for title in ("count", "bytes", "movable", "read per token"):
        table.add_column(title, justify="right")
    table.add_column("lies on")
    for (kind, home), group in groupby(sorted(model.shards, key=_group), key=_group):
        shards = list(group)
        table.add_row(
            kind,
            str(len(shards)),
            format_bytes(sum(shard.bytes for shard in shards)),
            format_bytes(sum(shard.movable_bytes for shard in shards)),
            format_bytes(sum(shard.active_bytes for shard in shards)),
            home,
        )
    table.add_section()
    table.add_row("all", str(len(model.shards)), format_bytes(model.weight_bytes), "", "", "")
    return table


def _context(model: ModelGraph, context: PlannedContext, memory: MemoryEstimate) -> Table:
    types = " and ".join(dict.fromkeys((context.kv_type_k, context.kv_type_v)))
    parts = {
        f"KV cache, whole context ({types})": memory.full_kv_bytes,
        "KV cache, sliding windows": memory.window_kv_bytes,
        "KV cache of one more token": _kv_bytes_per_token(model, context),
        "recurrent state": memory.state_bytes,
        "compute buffers": memory.compute_bytes,
    }
    table = Table(show_edge=False)
    table.add_column(f"context of {context.tokens} tokens in {context.sequences} sequence(s)")
    table.add_column("bytes", justify="right")
    for title, size_bytes in parts.items():
        if size_bytes:
            table.add_row(title, format_bytes(size_bytes))
    return table


def _notes(model: ModelGraph) -> Iterator[str]:
    if model.second_copy_bytes:
        yield f"{format_bytes(model.second_copy_bytes)} are in the file once and in memory twice (tied)."
    if model.unused_bytes:
        yield f"{format_bytes(model.unused_bytes)} of the file are not loaded (MTP blocks; see --mtp)."
    if model.generic:
        yield f"The architecture '{model.architecture}' is unknown: its sizes follow a generic rule."
    yield from model.notes


def _kv_bytes_per_token(model: ModelGraph, context: PlannedContext) -> int:
    return model.cache.kv_bytes_per_token(context.kv_type_k, context.kv_type_v)


def _group(shard: Shard) -> tuple[str, str]:
    return shard.kind, shard.home


def _described(shard: Shard) -> dict[str, Any]:
    return {
        "name": shard.name,
        "kind": shard.kind,
        "layer": shard.layer,
        "home": shard.home,
        "bytes": shard.bytes,
        "movable_bytes": shard.movable_bytes,
        "active_bytes": shard.active_bytes,
        "flops_per_token": shard.flops_per_token,
        "tensors": [tensor.name for tensor in shard.tensors],
    }
