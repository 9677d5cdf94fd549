"""AMD GPUs, as the amdgpu driver describes them in sysfs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.machine.document import Device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_plugin.machine.files import SystemFiles
    from xlm_plugin.machine.memory import HostMemory
    from xlm_plugin.machine.pci import PciGpu

NAME = "ROCm0"


def read_amd(files: SystemFiles, gpus: Sequence[PciGpu], memory: HostMemory) -> Device | None:
    """Return the one of ``gpus`` with the most memory, or None where the driver describes none."""
    devices = [device for gpu in gpus if (device := _read(files, gpu, memory))]
    return max(devices, key=lambda device: (not device.unified, device.memory_bytes), default=None)


def _read(files: SystemFiles, gpu: PciGpu, memory: HostMemory) -> Device | None:
    vram_bytes = files.number(f"{gpu.folder}/mem_info_vram_total")
    if vram_bytes is None:
        return None
    free_bytes = vram_bytes - (files.number(f"{gpu.folder}/mem_info_vram_used") or 0)
    unified = _is_integrated(files, gpu)
    if unified:
        # The driver takes from the carve-out or from host memory through the GTT, never from both at once.
        gtt_bytes = files.number(f"{gpu.folder}/mem_info_gtt_total") or 0
        gtt_free_bytes = gtt_bytes - (files.number(f"{gpu.folder}/mem_info_gtt_used") or 0)
        vram_bytes = max(vram_bytes, min(gtt_bytes, memory.total_bytes))
        free_bytes = max(free_bytes, min(gtt_free_bytes, memory.available_bytes))
    return Device(NAME, gpu.title, vram_bytes, free_bytes, unified=unified)


def _is_integrated(files: SystemFiles, gpu: PciGpu) -> bool:
    # The third byte of gpu_metrics is its format: 1 for cards, 2 and 3 for APUs (Linux kgd_pp_interface.h).
    metrics = files.data(f"{gpu.folder}/gpu_metrics") or b""
    return len(metrics) > 2 and metrics[2] > 1
