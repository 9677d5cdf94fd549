"""What a driver takes of a device beside the buffers that an engine asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Device

# A CUDA context takes 3 MiB for each multiprocessor: 107 MiB of an RTX 4060 Ti's 34, 555 MiB of an RTX PRO
# 6000's 188 (llama.cpp pull request 23604). This is an RTX 4090's; nothing reports the number beforehand.
CONTEXT_BYTES = 384 * MIB
# A pool without virtual memory keeps a buffer that was outgrown beside the next, 5 % larger one
# (ggml-cuda's ggml_cuda_pool_leg).
_LEGACY_POOL_FACTOR = 2.05


def driver_bytes(device: Device, activation_bytes: int = 0, *, virtual_memory: bool = True) -> int:
    """Return the bytes of the driver's context and of the pool that ops take temporaries from.

    The pool holds half-precision copies of a step's activations (``activation_bytes`` in floats).
    ``virtual_memory`` is whether the pool can grow in place ("VMM: yes" in ggml-cuda's log). An emulated
    device has no driver.
    """
    if device.emulated:
        return 0
    pool_bytes = activation_bytes // 2
    return CONTEXT_BYTES + (pool_bytes if virtual_memory else int(pool_bytes * _LEGACY_POOL_FACTOR))
