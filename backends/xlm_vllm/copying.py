"""Copies from host memory to the device, beside computing."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Protocol

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from xlm_vllm.ring import Transfer


class CopyStream(Protocol):
    """Carries out copies in the order they are started. ``moved_bytes`` counts what it has been given."""

    moved_bytes: int
    busy_seconds: float

    def start(
        self, source: torch.Tensor, target: torch.Tensor, arrived: Callable[[], None] | None = None
    ) -> Transfer:
        """Copy ``source`` to ``target``, both flat bytes, after all computing that was issued before.

        An emulated device calls ``arrived`` when the bytes are there, before anyone waiting goes on.
        """

    def close(self) -> None:
        """Finish what was started, and stop."""


def open_copy_stream(device: torch.device, link_bytes_per_s: float | None) -> CopyStream:
    """Return the copy stream of ``device``. Only an emulated device has a link of a chosen speed."""
    return CudaCopyStream(device) if device.type == "cuda" else ThreadCopyStream(link_bytes_per_s)


class CudaCopyStream:
    """A second CUDA stream. Events order it with the computing stream; the host never waits."""

    def __init__(self, device: torch.device) -> None:
        self.moved_bytes = 0
        self.busy_seconds = 0.0
        self._stream = torch.cuda.Stream(device)

    def start(
        self,
        source: torch.Tensor,
        target: torch.Tensor,
        arrived: Callable[[], None] | None = None,  # noqa: ARG002
    ) -> Transfer:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            target.copy_(source, non_blocking=True)
            there = torch.cuda.Event()
            there.record()
        self.moved_bytes += source.nbytes
        return _CudaTransfer(there)

    def close(self) -> None:
        self._stream.synchronize()


class _CudaTransfer:
    def __init__(self, there: torch.cuda.Event) -> None:
        self._there = there

    def wait(self) -> bool:
        was_there = self._there.query()
        torch.cuda.current_stream().wait_event(self._there)
        return was_there


class ThreadCopyStream:
    """A thread that copies; with ``link_bytes_per_s`` it takes as long as a link of that speed."""

    def __init__(self, link_bytes_per_s: float | None = None) -> None:
        self.moved_bytes = 0
        self.busy_seconds = 0.0
        self._link_bytes_per_s = link_bytes_per_s
        self._queue: queue.SimpleQueue[_ThreadTransfer | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="xlm-copy", daemon=True)
        self._thread.start()

    def start(
        self, source: torch.Tensor, target: torch.Tensor, arrived: Callable[[], None] | None = None
    ) -> Transfer:
        # NumPy copies on one thread alone and without the interpreter's lock.
        transfer = _ThreadTransfer(source.numpy(), target.numpy(), arrived)
        self.moved_bytes += source.nbytes
        self._queue.put(transfer)
        return transfer

    def close(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        # A link that never idles between two copies: each one is due after the one before it.
        due = 0.0
        while (transfer := self._queue.get()) is not None:
            begun = time.perf_counter()
            transfer.carry_out()
            if self._link_bytes_per_s:
                due = max(due, begun) + transfer.source.nbytes / self._link_bytes_per_s
                time.sleep(max(0.0, due - time.perf_counter()))
            self.busy_seconds += time.perf_counter() - begun
            transfer.there.set()
            # While this waits for the next one, nothing may keep the memory of the last.
            del transfer


class _ThreadTransfer:
    def __init__(self, source: np.ndarray, target: np.ndarray, arrived: Callable[[], None] | None) -> None:
        self.source = source
        self.there = threading.Event()
        self._target = target
        self._arrived = arrived

    def carry_out(self) -> None:
        self._target[:] = self.source
        if self._arrived is not None:
            self._arrived()

    def wait(self) -> bool:
        was_there = self.there.is_set()
        self.there.wait()
        return was_there
