"""A binding of NVML whose driver answers, refuses or is divided as a test says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from xlm_plugin.units import GIB


class NVMLError(Exception):
    """What the binding raises."""


class NVMLError_NotSupported(NVMLError):  # noqa: N801, N818  the binding's own name
    """The device does not have that."""


class NVMLError_NotFound(NVMLError):  # noqa: N801, N818
    """There is no such thing."""


class FakeNvml:
    """One GPU of 12 GiB. ``refusals`` maps a call's name to what it raises.

    ``instances`` maps the index of a MIG instance to its bytes; it is None for a GPU that is whole.
    """

    NVMLError = NVMLError
    NVMLError_NotSupported = NVMLError_NotSupported
    NVMLError_NotFound = NVMLError_NotFound

    def __init__(
        self,
        *,
        refusals: dict[str, Exception] | None = None,
        instances: dict[int, int] | None = None,
        name: str | bytes = "Fast GPU",
    ) -> None:
        self.refusals = refusals or {}
        self.instances = instances
        self.name = name
        self.asked: list[str] = []

    def __getattr__(self, call: str) -> Any:
        def answer(*arguments: Any) -> Any:
            self.asked.append(call)
            if call in self.refusals:
                raise self.refusals[call]
            return getattr(self, f"answer_{call.removeprefix('nvml')}")(*arguments)

        if not call.startswith("nvml"):
            raise AttributeError(call)
        return answer

    def answer_Init(self) -> None: ...  # noqa: N802

    def answer_Shutdown(self) -> None: ...  # noqa: N802

    def answer_SystemGetDriverVersion(self) -> str:  # noqa: N802
        return "570.1"

    def answer_DeviceGetHandleByIndex(self, index: int) -> Any:  # noqa: N802
        return SimpleNamespace(title=self.name, total=12 * GIB, free=11 * GIB, index=index)

    def answer_DeviceGetHandleByUUID(self, uuid: str) -> Any:  # noqa: N802
        return SimpleNamespace(title=uuid, total=16 * GIB, free=16 * GIB)

    def answer_DeviceGetName(self, handle: Any) -> str | bytes:  # noqa: N802
        title: str | bytes = handle.title
        return title

    def answer_DeviceGetMemoryInfo(self, handle: Any) -> Any:  # noqa: N802
        return handle

    def answer_DeviceGetMigMode(self, handle: Any) -> list[int]:  # noqa: N802, ARG002
        if self.instances is None:
            raise NVMLError_NotSupported("Not Supported")
        return [1, 1]

    def answer_DeviceGetMaxMigDeviceCount(self, handle: Any) -> int:  # noqa: N802, ARG002
        return 7

    def answer_DeviceGetMigDeviceHandleByIndex(self, handle: Any, index: int) -> Any:  # noqa: N802, ARG002
        if index not in (self.instances or {}):
            raise NVMLError_NotFound("Not Found")
        size_bytes = (self.instances or {})[index]
        return SimpleNamespace(title=f"instance {index}", total=size_bytes, free=size_bytes)
