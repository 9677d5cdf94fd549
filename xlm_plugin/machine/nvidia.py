"""NVIDIA GPUs, as NVML describes them. Whatever it refuses is left to the next source."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = "CUDA0"


@dataclass(frozen=True, slots=True)
class NvidiaReading:
    """What NVML says about the GPU that CUDA would take first.

    ``problem`` says what went wrong; what was not read by then is None. Memory is None without a
    problem where the GPU has none of its own (GB10).
    """

    driver: str | None = None
    description: str | None = None
    memory_bytes: int | None = None
    free_bytes: int | None = None
    problem: str | None = None


def import_nvml() -> Any:
    """Return the binding of NVML."""
    return import_module("pynvml")


def read_nvidia(environment: Mapping[str, str], load: Callable[[], Any] = import_nvml) -> NvidiaReading:
    """Return what NVML says, and close it again: an open handle keeps a GPU awake.

    GPUs are in PCI order, which is CUDA's own where CUDA_DEVICE_ORDER says so.
    """
    reading = NvidiaReading()
    try:
        nvml = load()
        nvml.nvmlInit()
        try:
            reading = replace(reading, driver=_text(nvml.nvmlSystemGetDriverVersion()))
            handle = _first_visible(nvml, environment.get("CUDA_VISIBLE_DEVICES"))
            reading = replace(reading, description=_text(nvml.nvmlDeviceGetName(handle)))
            with suppress(nvml.NVMLError_NotSupported):
                memory = nvml.nvmlDeviceGetMemoryInfo(handle)
                reading = replace(reading, memory_bytes=int(memory.total), free_bytes=int(memory.free))
        finally:
            nvml.nvmlShutdown()
    # The binding raises its own errors, those of ctypes, and AttributeError where driver and binding differ.
    except Exception as error:
        reading = replace(reading, problem=str(error) or type(error).__name__)
    return reading


def _first_visible(nvml: Any, visible: str | None) -> Any:
    """Return the handle of the GPU, or of the part of one, that CUDA takes first."""
    first = "0" if visible is None else visible.split(",")[0].strip()
    if first in ("", "-1"):
        raise LookupError("CUDA_VISIBLE_DEVICES hides all GPUs")
    if not first.isdecimal():
        return nvml.nvmlDeviceGetHandleByUUID(first)
    handle = nvml.nvmlDeviceGetHandleByIndex(int(first))
    return _first_instance(nvml, handle) if _is_divided(nvml, handle) else handle


def _is_divided(nvml: Any, handle: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except nvml.NVMLError_NotSupported:
        return False


def _first_instance(nvml: Any, handle: Any) -> Any:
    """Return the first MIG instance: the whole GPU's memory says nothing about it."""
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        with suppress(nvml.NVMLError_NotFound):
            return nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
    raise LookupError("the GPU is divided (MIG), but has no instance")


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
