"""What to measure, the most useful first: a run that is interrupted has measured what matters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xlm_plugin.machine.profile import (
    CROSSING,
    DISK_READ,
    DOWNLOAD,
    HOST_READ,
    UPLOAD,
    MeasurementRequest,
)
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xlm_plugin.machine.document import Machine
    from xlm_plugin.machine.profile import Side
    from xlm_plugin.model.graph import ModelGraph, Shard

COMMON_TYPES = ("Q4_0", "Q4_K", "Q8_0", "F16", "Q6_K")
OTHER_TYPES = (
    "Q5_K", "Q3_K", "Q2_K", "IQ4_XS", "MXFP4", "BF16", "F32", "Q4_1", "Q5_0", "Q5_1", "IQ3_S", "IQ3_XXS",
    "IQ2_S", "IQ2_XS", "IQ2_XXS", "IQ4_NL",
)  # fmt: skip
CACHE_TYPES = ("F16", "Q8_0", "Q4_0")
_NORM_WIDTHS = (1024, 8192)
_COPY_BYTES = (MIB // 4, 2 * MIB, 16 * MIB)
_PROBE = ("Q4_K", (2048, 2048))


class Requests:
    """The requests for ``machine``.

    An emulated device computes with the host's kernels: their rows serve both.
    """

    def __init__(self, machine: Machine, *, full: bool = False) -> None:
        self._threads = machine.host.threads
        device = machine.device
        self._copies = device is not None and not device.unified
        self._sides: tuple[Side, ...] = ("host",) if device is None or device.emulated else ("device", "host")
        self._full = full

    def all(self) -> list[MeasurementRequest]:
        """Return all requests, each once."""
        found = [*self._links(), *self._small(), *self._kernels(COMMON_TYPES), *self._attention()]
        found += [*self._experts(COMMON_TYPES), *self._beside(), *self._disk(), *self._kernels(OTHER_TYPES)]
        if self._full:
            found += [*self._experts(OTHER_TYPES), *self._fewer_threads()]
        return list(dict.fromkeys(found))

    def for_model(self, model: ModelGraph) -> list[MeasurementRequest]:
        """Return the requests for the shapes that ``model`` has, and what every model needs."""
        found = [*self._links(), *self._small(), *self._of_shards(model.shards, model)]
        found += [*self._attention_of(model), *self._beside(), *self._disk()]
        return list(dict.fromkeys(found))

    def _tokens(self) -> Sequence[int]:
        return (1, 2, 4, 8, 16, 32, 64, 128, 256, 512) if self._full else (1, 4, 32, 256)

    def _both(self, request: MeasurementRequest) -> Iterator[MeasurementRequest]:
        for side in self._sides:
            yield replace(request, on=side)

    def _kernels(self, types: Iterable[str]) -> Iterator[MeasurementRequest]:
        shapes = ((512, 512), (2048, 2048), (4096, 8192)) if self._full else ((512, 512), (2048, 2048))
        for kind in types:
            for shape in shapes:
                for tokens in self._tokens():
                    yield from self._both(MeasurementRequest("MUL_MAT", kind, shape, tokens, self._threads))

    def _experts(self, types: Iterable[str]) -> Iterator[MeasurementRequest]:
        shapes = ((512, 256, 32, 4), (2048, 768, 32, 4)) if self._full else ((1024, 512, 32, 4),)
        for kind in types:
            for shape in shapes:
                for tokens in (1, 4, 32, 256) if self._full else (1, 32):
                    request = MeasurementRequest("MUL_MAT_ID", kind, shape, tokens, self._threads)
                    yield from self._both(request)

    def _attention(self) -> Iterator[MeasurementRequest]:
        heads = ((64, 8, 4), (128, 32, 8)) if self._full else ((128, 8, 2),)
        cells = (256, 1024, 4096, 16384) if self._full else (256, 2048)
        for kind in CACHE_TYPES:
            for head in heads:
                for count in cells:
                    for tokens in (1, 16, 256) if self._full else (1, 64):
                        shape = (*head, count)
                        request = MeasurementRequest("FLASH_ATTN_EXT", kind, shape, tokens, self._threads)
                        yield from self._both(request)

    def _small(self) -> Iterator[MeasurementRequest]:
        for op in ("RMS_NORM", "ADD", "SWIGLU"):
            for width in _NORM_WIDTHS:
                for tokens in (1, 32, 512):
                    yield from self._both(MeasurementRequest(op, "F32", (width,), tokens, self._threads))

    def _links(self) -> Iterator[MeasurementRequest]:
        yield MeasurementRequest(HOST_READ, "", (256 * MIB,), 1, self._threads)
        if not self._copies:
            return
        for width in (4096, 65536):
            yield MeasurementRequest(CROSSING, "", (width,), 1, self._threads)
        for op in (UPLOAD, DOWNLOAD):
            for kind in ("pinned", "pageable"):
                for size in _COPY_BYTES:
                    yield MeasurementRequest(op, kind, (size,), 1, self._threads)

    def _beside(self) -> Iterator[MeasurementRequest]:
        if not self._copies:
            return
        kind, shape = _PROBE
        for tokens in (1, 32):
            request = MeasurementRequest("MUL_MAT", kind, shape, tokens, self._threads)
            yield from self._both(request)
            yield from self._both(replace(request, beside_copy=True))
        for link in ("pinned", "pageable"):
            copying = MeasurementRequest(UPLOAD, link, _COPY_BYTES[-1:], 1, self._threads, beside_copy=True)
            yield from self._both(copying)

    def _disk(self) -> Iterator[MeasurementRequest]:
        for kind in ("cold", "warm"):
            yield MeasurementRequest(DISK_READ, kind, (64 * MIB,))

    def _fewer_threads(self) -> Iterator[MeasurementRequest]:
        for threads in sorted({1, max(1, self._threads // 2)} - {self._threads}):
            for kind in COMMON_TYPES:
                for tokens in (1, 32):
                    yield MeasurementRequest("MUL_MAT", kind, (2048, 2048), tokens, threads)

    def _of_shards(self, shards: Iterable[Shard], model: ModelGraph) -> Iterator[MeasurementRequest]:
        from xlm_plugin.model.kernels import kernel_of

        for shard in shards:
            for tensor in shard.tensors:
                kernel = kernel_of(model, shard, tensor)
                if kernel is None or shard.home == "host":
                    continue
                for tokens in (1, 16, 64, 512) if not self._full else self._tokens():
                    op, shape = kernel
                    yield from self._both(MeasurementRequest(op, tensor.type, shape, tokens, self._threads))

    def _attention_of(self, model: ModelGraph) -> Iterator[MeasurementRequest]:
        from xlm_plugin.model.kernels import attention_head

        for layer in model.cache.layers:
            head = attention_head(model, layer)
            if head is None:
                continue
            for cells in (256, 1024, 4096):
                for tokens in (1, 64, 512):
                    shape = (*head, cells)
                    yield from self._both(
                        MeasurementRequest("FLASH_ATTN_EXT", "F16", shape, tokens, self._threads)
                    )
