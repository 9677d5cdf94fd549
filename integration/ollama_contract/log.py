"""llama-server's log as Ollama reads it (``llm/llama_server.go``, ``llm/status.go``)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from xlm_plugin.units import MIB

_BUFFER = re.compile(r"^(\S+):\s+(\S+)\s+(model|KV|compute|output|RS) buffer size\s*=\s*([\d.]+) MiB")
_OFFLOADED = re.compile(r"offloaded (\d+)/(\d+) layers to GPU")
_USING = re.compile(r"using device (\S+) .* - (\d+) MiB free")
_FAILURES = re.compile(
    "out of memory|failed to allocate|allocation failed|not enough memory|error:|cuda error", re.IGNORECASE
)


@dataclass
class EngineLog:
    """What Ollama knows of a running engine, line by line. Memory is counted for as long as it runs."""

    lines: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    offloaded_layers: int | None = None
    devices: list[str] = field(default_factory=list)
    _buffers: dict[tuple[str, str, str], float] = field(default_factory=dict)

    def read(self, line: str) -> None:
        """Take in one line."""
        self.lines.append(line)
        if _FAILURES.search(line):
            self.failures.append(line)
        if found := _BUFFER.search(line):
            component, device, kind, mib = found.groups()
            self._buffers[component, device, kind] = float(mib)
        if found := _OFFLOADED.search(line):
            self.offloaded_layers = int(found[1])
        if found := _USING.search(line):
            self.devices.append(found[1])

    @property
    def vram_bytes(self) -> dict[str, int]:
        """The memory of each device, but for the host's."""
        sums: dict[str, float] = {}
        for (_, device, _), mib in self._buffers.items():
            if not device.startswith("CPU") and not device.endswith("_Host"):
                sums[device] = sums.get(device, 0) + mib
        return {device: round(mib * MIB) for device, mib in sums.items()}
