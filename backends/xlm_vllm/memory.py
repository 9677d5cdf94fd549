"""Device memory and host copies of weights, as flat tensors of bytes."""

from __future__ import annotations

import ctypes
import mmap

import torch


def allocate_device(size_bytes: int, device: torch.device) -> torch.Tensor:
    """Return ``size_bytes`` of uninitialised memory on ``device``.

    An emulated device is this process's own memory, in pages that go back to the system as soon as
    the last tensor on them does.
    """
    if device.type == "cpu" and size_bytes:
        return torch.frombuffer(mmap.mmap(-1, size_bytes), dtype=torch.uint8)
    return torch.empty(size_bytes, dtype=torch.uint8, device=device)


def release_device(device: torch.device) -> None:
    """Give back what freed tensors have left in the allocator's cache."""
    if device.type == "cuda":
        torch.cuda.empty_cache()


def discard_pages(tensor: torch.Tensor) -> None:
    """Give back the pages of a tensor's whole storage in host memory; they read as zeros from then on."""
    storage = tensor.untyped_storage()
    start = -(-storage.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    size_bytes = storage.data_ptr() + storage.nbytes() - start
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size_bytes), mmap.MADV_DONTNEED):
        raise OSError(ctypes.get_errno(), "madvise")


class HostMemory:
    """Host copies of weights: pinned up to a limit in bytes, pageable beyond and where pinning fails."""

    def __init__(self, device: torch.device, pinned_limit_bytes: int | None) -> None:
        self.pinned_bytes = 0
        self.pageable_bytes = 0
        self._can_pin = device.type == "cuda"
        self._limit_bytes = pinned_limit_bytes

    def allocate(self, size_bytes: int) -> torch.Tensor:
        """Return ``size_bytes`` of uninitialised host memory."""
        if self._can_pin and (
            self._limit_bytes is None or self.pinned_bytes + size_bytes <= self._limit_bytes
        ):
            try:
                pinned = torch.empty(size_bytes, dtype=torch.uint8, device="cpu", pin_memory=True)
            except RuntimeError:
                # The driver or a memlock limit refuses; what is pinned already stays so.
                self._can_pin = False
            else:
                self.pinned_bytes += size_bytes
                return pinned
        self.pageable_bytes += size_bytes
        return torch.empty(size_bytes, dtype=torch.uint8, device="cpu")
