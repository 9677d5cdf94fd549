"""How fast a machine moves and computes: what a step's time is predicted from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Device, Host

# Published, as measured on other machines. Dual-channel desktops really get 32 to 55 GB/s in decode.
HOST_BYTES_PER_S = 50e9
# Scattered experts reach 114, attention over a cache 16 of the 153 GB/s that dense weights get on an
# 8-channel EPYC (arXiv 2604.26334).
HOST_EXPERTS_SHARE = 0.75
HOST_ATTENTION_SHARE = 0.1
# SmolLM2 Q4_1 prefill in llama.cpp b10488: 124 to 182 tokens/s on one AVX-512 thread, at 269 MFLOP a token.
HOST_FLOPS_PER_S_PER_THREAD = 40e9
# An RTX 5090 in the same paper: 1162 GB/s fit its decode; it reads 16384 tokens with 8B in F16 in 2.9 s.
DEVICE_BYTES_PER_S = 1162e9
DEVICE_FLOPS_PER_S = 90e12
# Four fifths of PCIe 4 x16's 31.5 GB/s; the same paper's laptop has 13 GB/s, its desktops 50.
LINK_BYTES_PER_S = 25e9
CROSSING_SECONDS = 305e-6
LAYER_SECONDS = 52e-6
# A crossing to an emulated device is a cut in the engine's graph: threads are handed over.
EMULATED_CROSSING_SECONDS = 20e-6


@dataclass(frozen=True, slots=True)
class Rates:
    """Effective rates of one machine, in bytes/s and floating-point operations/s.

    ``host_attention_bytes_per_s`` is how fast the CPU attends over a KV cache in host memory.
    ``crossing_seconds`` is the fixed cost of handing the activations from device to host or back,
    ``layer_seconds`` what launching a layer costs the device. ``device_copy_share`` and
    ``host_copy_share`` are the shares of their speed that device and host keep while a copy runs.
    ``device_experts_flops_per_s`` is how fast the device computes routed experts, where that is known apart.
    """

    link_bytes_per_s: float
    device_bytes_per_s: float
    device_flops_per_s: float
    host_bytes_per_s: float
    host_experts_bytes_per_s: float
    host_attention_bytes_per_s: float
    host_flops_per_s: float
    crossing_seconds: float
    layer_seconds: float = 0.0
    device_copy_share: float = 1.0
    host_copy_share: float = 1.0
    device_experts_flops_per_s: float | None = None


def described_rates(host: Host, device: Device) -> Rates:
    """Return rates from rules of thumb; nothing is measured.

    An emulated device computes with the host's rates.
    """
    host_flops_per_s = HOST_FLOPS_PER_S_PER_THREAD * max(1, host.threads)
    emulated = device.emulated
    return Rates(
        link_bytes_per_s=device.link_bytes_per_s or LINK_BYTES_PER_S,
        device_bytes_per_s=HOST_BYTES_PER_S if emulated else DEVICE_BYTES_PER_S,
        device_flops_per_s=host_flops_per_s if emulated else DEVICE_FLOPS_PER_S,
        host_bytes_per_s=HOST_BYTES_PER_S,
        host_experts_bytes_per_s=HOST_BYTES_PER_S * HOST_EXPERTS_SHARE,
        host_attention_bytes_per_s=HOST_BYTES_PER_S * HOST_ATTENTION_SHARE,
        host_flops_per_s=host_flops_per_s,
        crossing_seconds=EMULATED_CROSSING_SECONDS if emulated else CROSSING_SECONDS,
        layer_seconds=0.0 if emulated else LAYER_SECONDS,
    )
