"""How Ollama finds devices: two short starts of llama-server for each folder of backends."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from integration.ollama_contract.runner import free_port
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from integration.ollama_contract.layout import OllamaLayout

_DEVICE = re.compile(r"^\s+(\S+): (.+) \((\d+) MiB, (\d+) MiB free\)$", re.MULTILINE)
_LIBRARIES = {"cuda": "CUDA", "rocm": "ROCm", "hip": "ROCm", "metal": "Metal", "vulkan": "Vulkan"}
_START_SECONDS = 60


@dataclass(frozen=True)
class FoundDevice:
    """A device as Ollama knows it. ``index`` is its place in the listing."""

    name: str
    description: str
    total_bytes: int
    free_bytes: int
    index: int
    folder: Path

    @property
    def library(self) -> str:
        """What Ollama takes the device's library for: unknown ones are called by their description."""
        words = f"{self.name} {self.description}".lower()
        return next((name for word, name in _LIBRARIES.items() if word in words), self.description)

    @property
    def flash_attention(self) -> str:
        """What Ollama says to ``--flash-attn`` on this device."""
        return "auto" if self.library in _LIBRARIES.values() else "off"


def discover(layout: OllamaLayout, environment: Mapping[str, str]) -> list[FoundDevice]:
    """Return the devices of all folders; of one device in two folders the later folder's counts."""
    only = environment.get("OLLAMA_LLM_LIBRARY")
    found: dict[tuple[str, str], FoundDevice] = {}
    for folder in layout.device_folders():
        if not only or folder.name == only:
            found |= {
                (device.name, device.description): device for device in probe(layout, folder, environment)
            }
    return list(found.values())


def probe(layout: OllamaLayout, folder: Path, environment: Mapping[str, str]) -> list[FoundDevice]:
    """Return the devices of one folder. A start that fails drops the folder."""
    probed = layout.environment(folder, environment)
    if not _answers(layout, probed):
        return []
    listing = subprocess.run(
        [str(layout.server), "--list-devices", "--offline", "--verbose"],
        env=probed,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_START_SECONDS,
        check=False,
    )
    if listing.returncode != 0:
        return []
    devices = [
        FoundDevice(name, description, int(total) * MIB, int(free) * MIB, index, folder)
        for index, (name, description, total, free) in enumerate(_DEVICE.findall(listing.stdout))
    ]
    return [device for device in devices if device.total_bytes]


def _answers(layout: OllamaLayout, environment: Mapping[str, str]) -> bool:
    arguments = ["--port", str(free_port()), "--host", "127.0.0.1", "--no-webui", "--offline", "--verbose"]
    process = subprocess.Popen(
        [str(layout.server), *arguments],
        env=dict(environment),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    with process:
        answered = any("system_info:" in line for line in process.stderr)
        process.kill()
    return answered
