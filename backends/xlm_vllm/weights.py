"""A shard's parameters as one run of bytes: a clean host copy, and places that they can be bound to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from xlm_vllm.memory import HostMemory

_ALIGNMENT_BYTES = 256


@dataclass(frozen=True)
class _Place:
    """Where one parameter lies in its shard's run of bytes."""

    parameter: torch.nn.Parameter
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    dtype: torch.dtype

    def view(self, flat: torch.Tensor) -> torch.Tensor:
        extent = _extent(self.shape, self.stride) * self.dtype.itemsize
        typed = flat[self.offset : self.offset + extent].view(self.dtype)
        return typed.as_strided(self.shape, self.stride)


class Packer(Protocol):
    """A kernel that computes from a packed copy of ``parameter``, as an emulated device's do."""

    parameter: torch.nn.Parameter

    def keep(self, weight: torch.Tensor) -> None:
        """Pack the parameter's value ``weight``, for as long as it stays where it is."""

    def forget(self) -> None:
        """Drop the packed copy: the weight is about to be overwritten or freed."""


class ShardWeights:
    """The parameters of one shard. ``master`` is their clean copy in host memory.

    ``packers`` are told when the shard has come to the device, and when it is about to go.
    """

    def __init__(
        self,
        name: str,
        parameters: Sequence[torch.nn.Parameter],
        host: HostMemory,
        packers: Sequence[Packer] = (),
    ) -> None:
        self.name = name
        self._packers = packers
        places, offset = [], 0
        for parameter in parameters:
            data = parameter.data
            places.append(_Place(parameter, offset, tuple(data.shape), data.stride(), data.dtype))
            extent_bytes = _extent(data.shape, data.stride()) * data.element_size()
            offset += -(-extent_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        self._places = tuple(places)
        self._bound: object = None
        self.bytes = offset
        self.master = host.allocate(offset)
        for place in self._places:
            place.view(self.master).copy_(place.parameter.data)

    def views(self, flat: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the parameters as they lie in ``flat``, which has the bytes of this shard or more."""
        return tuple(place.view(flat) for place in self._places)

    def bind(self, flat: torch.Tensor) -> None:
        """Let the parameters read from ``flat``."""
        if self._bound is flat:
            return
        for place in self._places:
            place.parameter.data = place.view(flat)
        self._bound = flat

    def arrived(self, flat: torch.Tensor) -> None:
        """The shard is in ``flat``, on the device."""
        for packer in self._packers:
            (place,) = (place for place in self._places if place.parameter is packer.parameter)
            packer.keep(place.view(flat))

    def going(self) -> None:
        """Where the shard was on the device is about to be overwritten or freed."""
        for packer in self._packers:
            packer.forget()

    def bind_to(self, views: Sequence[torch.Tensor]) -> None:
        """Let each parameter read from a tensor of its own."""
        for place, view in zip(self._places, views, strict=True):
            place.parameter.data = view
        self._bound = views


def _extent(shape: Sequence[int], stride: Sequence[int]) -> int:
    """Return the elements between the first and the last one of a strided tensor, both included."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * step for extent, step in zip(shape, stride, strict=True))
