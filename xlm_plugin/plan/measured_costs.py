"""Step costs from what was measured on the machine; by described rates where nothing was."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from xlm_plugin.machine.lookup import Lookup
from xlm_plugin.machine.profile import CROSSING, HOST_READ, UPLOAD
from xlm_plugin.machine.rates import Rates, described_rates
from xlm_plugin.model.cache import CELL_STEP
from xlm_plugin.model.kernels import SMALL_OPS, attention_head, kernel_of
from xlm_plugin.plan.step_costs import CostModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.machine.document import Device
    from xlm_plugin.machine.profile import Profile, Side
    from xlm_plugin.model.cache import LayerCache
    from xlm_plugin.model.graph import ModelGraph, Shard
    from xlm_plugin.plan.step_costs import Floats, HostSide, StepCosts, StepLoad

_LARGE_COPY_BYTES = 16 << 20


@dataclass(frozen=True)
class MeasuredCostModel(CostModel):
    """Costs by the kernels that the step runs: each matrix, attention, and the small ops between them."""

    lookup: Lookup = field(kw_only=True)
    device: Device = field(kw_only=True)

    def costs(self, load: StepLoad) -> StepCosts:
        """Return the costs of a step of ``load``."""
        described = super().costs(load)
        # An emulated device computes with the host's kernels.
        device_side: Side = "host" if self.device.emulated else "device"
        device, host = (self._weights(side, load, fallback) for side, fallback in (
            (device_side, described.device), ("host", described.host),
        ))  # fmt: skip
        return replace(
            described,
            device=device,
            host=host,
            device_cache=self._attention_seconds(device_side, load, described.device_cache)
            + described.cache_copy_bytes / self.rates.link_bytes_per_s,
            host_cache=self._attention_seconds("host", load, described.host_cache),
            copy=self._copies(described.copy),
        )

    def _weights(self, side: Side, load: StepLoad, fallback: Floats) -> Floats:
        found = fallback.copy()
        for at, shard in enumerate(self.shards):
            tokens = min(load.sequences, load.new_tokens) if shard.kind == "output" else load.new_tokens
            seconds = self._shard_seconds(side, shard, tokens)
            if seconds is not None:
                found[at] = seconds
        return found

    def _shard_seconds(self, side: Side, shard: Shard, tokens: int) -> float | None:
        total = self._small_seconds(side, shard, tokens)
        for kind, op, shape in self._kernels(shard):
            seconds = self.lookup.seconds(side, op, kind, shape, tokens)
            if seconds is None:
                return None
            total += seconds
        return total

    def _kernels(self, shard: Shard) -> Iterator[tuple[str, str, tuple[int, ...]]]:
        for tensor in shard.tensors:
            kernel = kernel_of(self.model, shard, tensor)
            if kernel:
                yield (tensor.type, *kernel)

    def _small_seconds(self, side: Side, shard: Shard, tokens: int) -> float:
        width = (self.model.shape.embedding_width,)
        each = self.lookup.seconds(side, "ADD", "F32", width, tokens)
        return SMALL_OPS.get(shard.kind, 0) * (each or 0.0)

    def _attention_seconds(self, side: Side, load: StepLoad, fallback: Floats) -> Floats:
        found = fallback.copy()
        for at, cache in enumerate(self._traits.caches):
            seconds = self._layer_attention(side, cache, load) if cache else None
            if seconds is not None:
                found[at] = seconds
        return found

    def _layer_attention(self, side: Side, cache: LayerCache, load: StepLoad) -> float | None:
        head = attention_head(self.model, cache)
        if head is None:
            return None
        each = max(1, load.new_tokens // load.sequences)
        cells = load.cached_tokens + each
        if cache.window_tokens:
            cells = min(cells, cache.window_tokens + each)
        padded = -(-cells // CELL_STEP) * CELL_STEP
        seconds = self.lookup.seconds(side, "FLASH_ATTN_EXT", load.kv_type_k.upper(), (*head, padded), each)
        return None if seconds is None else seconds * load.sequences

    def _copies(self, fallback: Floats) -> Floats:
        kind = _copy_kind(self.lookup)
        if kind is None or self.device.unified:
            return fallback
        sizes = self._traits.bytes
        measured = np.array(
            [self.lookup.seconds("host", UPLOAD, kind, (max(1, int(size)),)) or 0.0 for size in sizes]
        )
        # Copying cannot be quicker than the set link, nor than this machine really copies.
        copies: Floats = np.maximum(measured, fallback) if self.device.emulated else measured
        return copies


def measured_cost_model(
    model: ModelGraph, shards: tuple[Shard, ...], profile: Profile, host_side: HostSide
) -> MeasuredCostModel:
    """Return the cost model of ``shards`` on the machine of ``profile``, which was measured."""
    device = profile.machine.device
    assert device is not None
    threads = profile.machine.host.threads
    lookup = Lookup(profile.measurements, threads)
    return MeasuredCostModel(
        model, shards, _rates(profile, device, lookup), host_side, lookup=lookup, device=device
    )


def unmeasured_types(model: ModelGraph, profile: Profile) -> tuple[str, ...]:
    """Return the weight types of ``model`` whose products were not measured on the machine's host."""
    measured = {(each.request.op, each.request.type) for each in profile.measurements}
    wanted = {
        (kernel[0], tensor.type)
        for shard in model.shards
        for tensor in shard.tensors
        if shard.home == "device" and (kernel := kernel_of(model, shard, tensor))
    }
    return tuple(sorted({kind for _, kind in wanted - measured}))


def _rates(profile: Profile, device: Device, lookup: Lookup) -> Rates:
    """Return the described rates with those that were measured in their place."""
    rates = described_rates(profile.machine.host, device)
    reads = [each for each in profile.measurements if each.request.op == HOST_READ]
    if reads:
        host = reads[-1].request.shape[0] / reads[-1].seconds
        scale = host / rates.host_bytes_per_s
        rates = replace(
            rates,
            host_bytes_per_s=host,
            host_experts_bytes_per_s=rates.host_experts_bytes_per_s * scale,
            host_attention_bytes_per_s=rates.host_attention_bytes_per_s * scale,
        )
    crossing = lookup.seconds("host", CROSSING, "", (4 * 1024,))
    kind = _copy_kind(lookup)
    share = 1.0
    if kind and not device.unified:
        large = lookup.seconds("host", UPLOAD, kind, (_LARGE_COPY_BYTES,)) or 0.0
        copied = _LARGE_COPY_BYTES / large if large else rates.link_bytes_per_s
        set_speed = device.link_bytes_per_s if device.emulated and device.link_bytes_per_s else copied
        # Of the time that a slow link takes, the cores copy only a part.
        share = min(1.0, set_speed / copied)
        rates = replace(rates, link_bytes_per_s=min(set_speed, copied))
    kept_host, kept_device = (lookup.kept_share(side) for side in ("host", "device"))
    kept_device = kept_host if device.emulated else kept_device
    return replace(
        rates,
        crossing_seconds=crossing if crossing is not None else rates.crossing_seconds,
        layer_seconds=0.0,
        host_copy_share=1.0 - share * (1.0 - (kept_host or 1.0)),
        device_copy_share=1.0 - share * (1.0 - (kept_device or 1.0)),
    )


def _copy_kind(lookup: Lookup) -> str | None:
    return next(
        (
            kind
            for kind in ("pinned", "pageable")
            if lookup.seconds("host", UPLOAD, kind, (_LARGE_COPY_BYTES,)) is not None
        ),
        None,
    )
