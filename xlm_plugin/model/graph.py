"""The shard graph: a model as the ordered list of sub-layers that are placed as one."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.model.cache import CacheRule

ShardKind = Literal[
    "token_embd", "attn", "ffn", "experts", "shared_experts", "ssm", "output", "vision", "mtp", "other"
]
Home = Literal["device", "host"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """One weight tensor as stored.

    ``shape`` is in ggml order (row length first). ``movable`` is true for matrices that a plan may
    stream or run on the CPU; norms, biases, routers and other small tensors stay on the device.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    bytes: int
    movable: bool

    @property
    def parameters(self) -> int:
        """Number of weights."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True)
class Shard:
    """A sub-layer that is placed as one, such as ``blk.3.attn``.

    ``home`` is ``"host"`` for tables that the engine keeps in host memory whatever the plan says
    (``token_embd``). ``flops_per_token`` counts multiply and add apart, for one new token.
    ``active_bytes`` are the weight bytes that one token reads: all of them, or for routed experts
    the share of the experts that one token selects.
    """

    name: str
    kind: ShardKind
    layer: int | None
    tensors: tuple[Tensor, ...]
    flops_per_token: int
    active_bytes: int
    home: Home = "device"

    @cached_property
    def bytes(self) -> int:
        """All weight bytes of the shard."""
        return sum(tensor.bytes for tensor in self.tensors)

    @cached_property
    def movable_bytes(self) -> int:
        """The bytes that a plan may place; the rest always lies on the device."""
        return sum(tensor.bytes for tensor in self.tensors if tensor.movable)


@dataclass(frozen=True)
class Shape:
    """The dimensions of a model that planning needs. Widths are in elements.

    ``experts`` and ``experts_used`` are 0 for dense models. ``head_count`` is the largest over layers.
    """

    layers: int
    embedding_width: int
    ffn_width: int
    head_count: int
    vocabulary: int
    context_tokens: int
    experts: int = 0
    experts_used: int = 0


@dataclass(frozen=True)
class ModelGraph:
    """A model: its shards in execution order, its cache rule, and where its bytes lie.

    ``fingerprint`` (``"sha256:..."``) covers architecture, hyper-parameters and the tensor table; it
    does not depend on the order of tensors or the number of files. ``second_copy_bytes`` are bytes
    that are in the file once but in memory twice (a tied output head). ``unused_bytes`` are in the
    file but never loaded (MTP blocks when they are not used). ``generic`` says that the architecture
    is unknown and the safe rule was used. ``notes`` are sentences for the user.
    """

    name: str
    architecture: str
    format: Literal["gguf", "huggingface"]
    path: Path
    files: tuple[Path, ...]
    fingerprint: str
    file_bytes: int
    shape: Shape
    shards: tuple[Shard, ...]
    cache: CacheRule
    second_copy_bytes: int = 0
    unused_bytes: int = 0
    generic: bool = False
    notes: tuple[str, ...] = field(default=())

    @cached_property
    def parameters(self) -> int:
        """Number of weights in the file that are used; a tied output head counts once."""
        seen = {tensor.name: tensor.parameters for shard in self.shards for tensor in shard.tensors}
        return sum(seen.values())

    @cached_property
    def movable_tensors(self) -> frozenset[str]:
        """Names of the tensors that a plan places. A vision tower is the engine's own to place."""
        return frozenset(
            tensor.name
            for shard in self.shards
            if shard.home == "device" and shard.kind != "vision"
            for tensor in shard.tensors
            if tensor.movable
        )

    @cached_property
    def device_weight_bytes(self) -> int:
        """Weight bytes on the device when everything is resident."""
        return sum(shard.bytes for shard in self.shards if shard.home == "device")

    @cached_property
    def host_weight_bytes(self) -> int:
        """Weight bytes that stay in host memory whatever the plan says."""
        return sum(shard.bytes for shard in self.shards if shard.home == "host")

    @cached_property
    def weight_bytes(self) -> int:
        """All weight bytes in memory, second copies included."""
        return self.device_weight_bytes + self.host_weight_bytes
