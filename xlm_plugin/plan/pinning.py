"""Whether the host may pin the weights that it copies from: a link is slower from memory that it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Host, Machine
    from xlm_plugin.model.graph import ModelGraph

# A rule of thumb: from pageable memory a driver copies twice, once into pinned memory of its own.
PAGEABLE_LINK_SHARE: Final = 0.5


def pinnable_bytes(host: Host) -> int | None:
    """Return how much memory may be pinned, None where it is not limited. Windows allows half of it."""
    limits = [host.memlock_bytes, host.memory_bytes // 2 if host.wsl else None]
    return min((limit for limit in limits if limit is not None), default=None)


def can_pin(model: ModelGraph, machine: Machine) -> bool:
    """Return whether all weights of ``model`` may be pinned, or need not be: no copy leaves the host."""
    device, most_bytes = machine.device, pinnable_bytes(machine.host)
    if device is None or device.unified or device.emulated or most_bytes is None:
        return True
    return model.device_weight_bytes <= most_bytes
