from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp.devices import list_devices, parse_devices
from xlm_plugin.errors import EngineError
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

LISTING = """Available devices:
  CUDA0: NVIDIA GeForce RTX 3060 (12036 MiB, 11900 MiB free)
  Vulkan0: llvmpipe (LLVM 15.0.6, 256 bits) (8000 MiB, 8000 MiB free)
  BLAS: OpenBLAS (0 MiB, 0 MiB free)
"""


def test_devices_are_read_from_the_engines_listing() -> None:
    first, second = parse_devices(LISTING)
    assert (first.name, first.description) == ("CUDA0", "NVIDIA GeForce RTX 3060")
    assert (first.memory_bytes, first.free_bytes) == (12036 * MIB, 11900 * MIB)
    assert second.description == "llvmpipe (LLVM 15.0.6, 256 bits)"


def test_a_machine_without_accelerator_has_no_devices() -> None:
    assert parse_devices("Available devices:\n  (none)\n") == ()


def test_the_engine_is_asked_for_its_devices(tmp_path: Path) -> None:
    server = tmp_path / "llama-server"
    server.write_text(f"#!/bin/sh\n[ $1 = --list-devices ] && cat <<'END'\n{LISTING}END\n")
    server.chmod(0o755)
    assert [device.name for device in list_devices(server)] == ["CUDA0", "Vulkan0"]


def test_an_engine_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="cannot be run"):
        list_devices(tmp_path / "nothing")
