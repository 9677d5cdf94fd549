"""The accelerators that an engine finds, by the names that ggml gives them."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

from xlm_plugin.errors import EngineError
from xlm_plugin.machine.document import Device
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

_TIMEOUT_SECONDS = 60
# "  CUDA0: NVIDIA GeForce RTX 3060 (12036 MiB, 11900 MiB free)"
_DEVICE = re.compile(r"\s+(\w+): (.+) \((\d+) MiB, (\d+) MiB free\)")


def list_devices(server: Path) -> tuple[Device, ...]:
    """Return the devices that the engine at ``server`` can run on, in its own order.

    Raises EngineError when the engine cannot be run.
    """
    try:
        result = subprocess.run(
            [str(server), "--list-devices"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(
            f"The engine {server} cannot be run: {error}.", "Build it again with 'xlm engine build'."
        ) from None
    return parse_devices(result.stdout)


def parse_devices(listing: str) -> tuple[Device, ...]:
    """Return the devices in what ``llama-server --list-devices`` prints."""
    return tuple(
        Device(
            name=match[1],
            description=match[2],
            memory_bytes=int(match[3]) * MIB,
            free_bytes=int(match[4]) * MIB,
        )
        for line in listing.splitlines()
        # Accelerators for single operations (BLAS) have no memory of their own.
        if (match := _DEVICE.fullmatch(line)) and int(match[3])
    )
