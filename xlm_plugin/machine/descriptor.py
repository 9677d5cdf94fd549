"""A machine that has a name and is described as data, to plan for it before buying it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from xlm_plugin.errors import UsageError
from xlm_plugin.machine.document import Device, Host, Machine
from xlm_plugin.machine.profile import Profile
from xlm_plugin.machine.rates import Rates, described_rates
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Quantity = Literal[
    "device_memory_gib",
    "host_memory_gib",
    "threads",
    "link_gb_per_s",
    "device_gb_per_s",
    "device_peak_gb_per_s",
    "device_tflops",
    "device_peak_tflops",
    "device_experts_tflops",
    "device_copy_share",
    "host_gb_per_s",
    "host_peak_gb_per_s",
    "host_experts_gb_per_s",
    "host_attention_gb_per_s",
    "crossing_us",
    "layer_us",
]

# An RTX 5090 gives 1206 of 1792 GB/s in decode and 90 of 209.5 TFLOP/s in prefill (arXiv 2604.26334).
DEVICE_BYTES_SHARE = 0.67
DEVICE_FLOPS_SHARE = 0.43
# Dual-channel desktops give 32 to 55 GB/s of some 58 to 90, the paper's EPYC 112 of 153.6.
HOST_BYTES_SHARE = 0.65


@dataclass(frozen=True, slots=True)
class Value:
    """A number and where it was published."""

    value: float
    source: str


@dataclass(frozen=True, slots=True)
class MachineDescriptor:
    """A described machine.

    ``values`` holds effective rates and, where there are none, the peaks of data sheets, which are derated.
    Prefixes are decimal (10**9 bytes/s, 10**12 operations/s) except in ``_gib``.
    """

    name: str
    title: str
    device: str
    cpu: str
    values: Mapping[Quantity, Value]
    unified: bool = False

    def device_document(self) -> Device:
        """Return the machine's device. All of its memory counts as free."""
        memory_bytes = int(self._required("device_memory_gib") * GIB)
        return Device(
            name=self.name,
            description=self.device,
            memory_bytes=memory_bytes,
            free_bytes=memory_bytes,
            unified=self.unified,
            link_bytes_per_s=self._required("link_gb_per_s") * 1e9,
        )

    def profile(self) -> Profile:
        """Return the machine's profile: no measurements, but rates."""
        device = self.device_document()
        memory_bytes = int(self._required("host_memory_gib") * GIB)
        host = Host(self.cpu, int(self._required("threads")), memory_bytes, memory_bytes)
        return Profile(Machine(host, device), rates=self._rates(described_rates(host, device)))

    def _rates(self, fallback: Rates) -> Rates:
        host = self._rate("host_gb_per_s", "host_peak_gb_per_s", HOST_BYTES_SHARE, fallback.host_bytes_per_s)
        scattered = fallback.host_experts_bytes_per_s / fallback.host_bytes_per_s
        attention = fallback.host_attention_bytes_per_s / fallback.host_bytes_per_s
        return Rates(
            link_bytes_per_s=fallback.link_bytes_per_s,
            device_bytes_per_s=self._rate(
                "device_gb_per_s", "device_peak_gb_per_s", DEVICE_BYTES_SHARE, fallback.device_bytes_per_s
            ),
            device_flops_per_s=self._rate(
                "device_tflops", "device_peak_tflops", DEVICE_FLOPS_SHARE, fallback.device_flops_per_s, 1e12
            ),
            host_bytes_per_s=host,
            host_experts_bytes_per_s=self._scaled("host_experts_gb_per_s", 1e9, host * scattered),
            host_attention_bytes_per_s=self._scaled("host_attention_gb_per_s", 1e9, host * attention),
            host_flops_per_s=fallback.host_flops_per_s,
            crossing_seconds=self._scaled("crossing_us", 1e-6, fallback.crossing_seconds),
            layer_seconds=self._scaled("layer_us", 1e-6, fallback.layer_seconds),
            device_copy_share=self._scaled("device_copy_share", 1.0, fallback.device_copy_share),
            device_experts_flops_per_s=self._scaled("device_experts_tflops", 1e12, 0.0) or None,
        )

    def _rate(
        self, effective: Quantity, peak: Quantity, share: float, fallback: float, unit: float = 1e9
    ) -> float:
        return self._scaled(effective, unit, self._scaled(peak, unit * share, fallback))

    def _scaled(self, quantity: Quantity, unit: float, fallback: float) -> float:
        found = self.values.get(quantity)
        return found.value * unit if found else fallback

    def _required(self, quantity: Quantity) -> float:
        return self.values[quantity].value


def find_machine(machines: Iterable[MachineDescriptor], name: str) -> MachineDescriptor:
    """Return the machine of that name. Raises UsageError where there is none."""
    known = {machine.name: machine for machine in machines}
    if name not in known:
        raise UsageError(
            f"There is no described machine '{name}'.", f"Known are: {', '.join(sorted(known))}."
        )
    return known[name]
