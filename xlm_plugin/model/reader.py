"""From a model's files to its shard graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import ModelError
from xlm_plugin.model.architectures import KNOWN, MTP_CACHE_APART
from xlm_plugin.model.cache import CacheRule
from xlm_plugin.model.cache_rules import cache_rule
from xlm_plugin.model.fingerprint import fingerprint
from xlm_plugin.model.gguf_names import gguf_role
from xlm_plugin.model.graph import ModelGraph, Shape
from xlm_plugin.model.hf_names import huggingface_role
from xlm_plugin.model.hyperparameters import Hyperparameters
from xlm_plugin.model.shards import ExpertUse, build_shards
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from xlm_plugin.model.graph import ShardKind
    from xlm_plugin.model.roles import Role
    from xlm_plugin.model.shards import ShardTable
    from xlm_plugin.model.stored import StoredModel


def read(path: Path, use_mtp: bool = False) -> ModelGraph:
    """Return the shard graph of the model at ``path``. See ``xlm_plugin.model.read_model``."""
    stored = _read_files(path)
    architecture = stored.metadata.get("general.architecture")
    if not stored.tensors:
        raise ModelError(
            f"{path} holds no weights.", "Name the model itself, not its tokenizer or an adapter."
        )
    if not isinstance(architecture, str):
        raise ModelError(f"{path} does not say which architecture it has.")
    hyper = Hyperparameters(stored.path, architecture, stored.metadata)
    if architecture == "clip" or stored.metadata.get("general.type") == "mmproj":
        return _projector(stored, hyper)
    return _language_model(stored, hyper, use_mtp)


def _read_files(path: Path) -> StoredModel:
    if path.is_dir():
        from xlm_plugin.model.hf_folder import read_folder

        return read_folder(path)
    from xlm_plugin.model.gguf_file import read_gguf

    return read_gguf(path)


def _language_model(stored: StoredModel, hyper: Hyperparameters, use_mtp: bool) -> ModelGraph:
    layers = _layers(stored, hyper)
    experts = _expert_use(hyper)
    parts = [(tensor, _role(stored, tensor.name, layers)) for tensor in stored.tensors]
    embedding = next((tensor.shape for tensor, role in parts if role.kind == "token_embd"), (0, 0))
    has_head = any(role.kind == "output" and role.matrix for _, role in parts)
    # An encoder without a head has none; a decoder without one uses its token embedding.
    tied = not has_head and bool(hyper.integer("attention.causal", 1))
    table = build_shards(parts, layers=layers, experts=experts, tied=tied, use_mtp=use_mtp)
    cache = cache_rule(
        hyper,
        layers=layers,
        attention=_layers_with("attn", table) | _idle_layers(stored, hyper, layers),
        recurrent=_layers_with("ssm", table),
        absorbed=any(".attn_k_b." in tensor.name for tensor in stored.tensors),
    )
    shape = Shape(
        layers=layers,
        embedding_width=hyper.integer("embedding_length", embedding[0]),
        ffn_width=hyper.integer("feed_forward_length", 0) or hyper.integer("expert_feed_forward_length", 0),
        head_count=hyper.integer("attention.head_count", 0),
        vocabulary=embedding[-1],
        context_tokens=hyper.integer("context_length", 0),
        experts=experts.total if experts.total > 1 else 0,
        experts_used=experts.used if experts.total > 1 else 0,
    )
    return _graph(stored, hyper, shape, table, cache, tuple(_notes(stored, hyper, table)))


def _projector(stored: StoredModel, hyper: Hyperparameters) -> ModelGraph:
    parts = [(tensor, gguf_role(tensor.name)) for tensor in stored.tensors]
    tower = "vision" if "vision.block_count" in hyper else "audio"
    shape = Shape(
        layers=hyper.integer(f"{tower}.block_count", 0),
        embedding_width=hyper.integer(f"{tower}.embedding_length", 0),
        ffn_width=hyper.integer(f"{tower}.feed_forward_length", 0),
        head_count=hyper.integer(f"{tower}.attention.head_count", 0),
        vocabulary=0,
        context_tokens=0,
    )
    return _graph(stored, hyper, shape, build_shards(parts), CacheRule(()), ())


def _graph(
    stored: StoredModel,
    hyper: Hyperparameters,
    shape: Shape,
    table: ShardTable,
    cache: CacheRule,
    notes: tuple[str, ...],
) -> ModelGraph:
    return ModelGraph(
        name="".join(character for character in stored.name if character.isprintable()),
        architecture=hyper.architecture,
        format=stored.format,
        path=stored.path,
        files=stored.files,
        fingerprint=fingerprint(stored, hyper),
        file_bytes=stored.file_bytes,
        shape=shape,
        shards=table.shards,
        cache=cache,
        second_copy_bytes=table.second_copy_bytes,
        unused_bytes=table.unused_bytes,
        generic=hyper.architecture not in KNOWN,
        notes=notes,
    )


def _layers(stored: StoredModel, hyper: Hyperparameters) -> int:
    """Return the number of layers without MTP blocks."""
    blocks = hyper.block_count()
    layers = blocks - hyper.integer("nextn_predict_layers", 0)
    if layers <= 0:
        raise ModelError(
            f"{stored.path} is damaged: all of its {blocks} blocks are for multi-token prediction."
        )
    return layers


def _role(stored: StoredModel, name: str, layers: int) -> Role:
    return gguf_role(name) if stored.format == "gguf" else huggingface_role(name, layers)


def _expert_use(hyper: Hyperparameters) -> ExpertUse:
    total = max(1, hyper.integer("expert_count", 0))
    return ExpertUse(used=min(hyper.integer("expert_used_count", 0) or total, total), total=total)


def _layers_with(kind: ShardKind, table: ShardTable) -> set[int]:
    return {shard.layer for shard in table.shards if shard.kind == kind and shard.layer is not None}


def _idle_layers(stored: StoredModel, hyper: Hyperparameters, layers: int) -> set[int]:
    """Return the MTP blocks that llama.cpp gives a cache in any case, whether it runs them or not."""
    if stored.format != "gguf" or hyper.architecture in MTP_CACHE_APART:
        return set()
    return set(range(layers, hyper.block_count()))


def _notes(stored: StoredModel, hyper: Hyperparameters, table: ShardTable) -> Iterator[str]:
    if hyper.architecture not in KNOWN:
        yield (
            f"xlm does not know the architecture '{hyper.architecture}' and uses generic rules: "
            "each attention layer counts with a full cache unless the file says otherwise."
        )
    if table.unused_bytes:
        yield f"{format_bytes(table.unused_bytes)} of the file are for multi-token prediction and not loaded."
    if method := stored.metadata.get("general.quantization"):
        yield f"The weights are quantised ({method}); the number of parameters counts their scales too."
