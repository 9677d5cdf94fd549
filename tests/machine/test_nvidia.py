"""What NVML says, and what becomes of its refusals: cases C35, C36 and C46."""

from __future__ import annotations

import pytest

from xlm_plugin.machine.nvidia import NvidiaReading, import_nvml, read_nvidia
from xlm_plugin.units import GIB

from .fake_nvml import FakeNvml, NVMLError, NVMLError_NotSupported


def read(nvml: FakeNvml, visible: str | None = None) -> NvidiaReading:
    return read_nvidia({} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}, lambda: nvml)


def test_a_gpu_is_described() -> None:
    assert read(FakeNvml()) == NvidiaReading("570.1", "Fast GPU", 12 * GIB, 11 * GIB)


def test_old_bindings_answer_in_bytes() -> None:
    assert read(FakeNvml(name=b"Fast GPU")).description == "Fast GPU"


def test_c46_nvml_is_closed_again() -> None:
    nvml = FakeNvml(refusals={"nvmlDeviceGetName": NVMLError("Unknown Error")})
    read(nvml)
    assert nvml.asked[-1] == "nvmlShutdown"


def test_c35_memory_that_is_not_supported_is_unknown_but_no_problem() -> None:
    nvml = FakeNvml(refusals={"nvmlDeviceGetMemoryInfo": NVMLError_NotSupported("Not Supported")})
    assert read(nvml) == NvidiaReading("570.1", "Fast GPU")


@pytest.mark.parametrize(
    ("call", "error", "problem"),
    [
        ("nvmlInit", NVMLError("NVML Shared Library Not Found"), "NVML Shared Library Not Found"),
        ("nvmlInit", NVMLError("Driver/library version mismatch"), "Driver/library version mismatch"),
        ("nvmlDeviceGetHandleByIndex", NVMLError("Insufficient Permissions"), "Insufficient Permissions"),
        ("nvmlDeviceGetMemoryInfo", NVMLError("GPU is lost"), "GPU is lost"),
        ("nvmlDeviceGetMigMode", AttributeError("nvmlDeviceGetMigMode"), "nvmlDeviceGetMigMode"),
        ("nvmlSystemGetDriverVersion", OSError(), "OSError"),
    ],
)
def test_c35_a_refusal_is_a_problem_and_never_raises(call: str, error: Exception, problem: str) -> None:
    assert read(FakeNvml(refusals={call: error})).problem == problem


def test_c35_a_missing_binding_is_a_problem_and_never_raises() -> None:
    def missing() -> None:
        raise ModuleNotFoundError("No module named 'pynvml'")

    assert read_nvidia({}, missing).problem == "No module named 'pynvml'"


def test_what_was_read_before_a_refusal_is_kept() -> None:
    reading = read(FakeNvml(refusals={"nvmlDeviceGetMemoryInfo": NVMLError("Insufficient Permissions")}))
    assert (reading.driver, reading.description, reading.memory_bytes) == ("570.1", "Fast GPU", None)


def test_c36_a_named_instance_is_asked_itself() -> None:
    reading = read(FakeNvml(instances={0: 32 * GIB}), "MIG-1234,MIG-5678")
    assert (reading.description, reading.memory_bytes) == ("MIG-1234", 16 * GIB)


def test_c36_the_first_instance_of_a_divided_gpu_is_asked_not_the_whole() -> None:
    reading = read(FakeNvml(instances={2: 16 * GIB, 5: 32 * GIB}))
    assert (reading.description, reading.memory_bytes) == ("instance 2", 16 * GIB)


def test_c36_a_divided_gpu_without_instances_is_a_problem() -> None:
    assert read(FakeNvml(instances={})).problem == "the GPU is divided (MIG), but has no instance"


def test_the_first_visible_gpu_is_asked() -> None:
    asked: list[int] = []

    class Several(FakeNvml):
        def answer_DeviceGetName(self, handle: object) -> str:  # noqa: N802
            asked.append(handle.index)  # type: ignore[attr-defined]
            return "Fast GPU"

    read(Several(), "2,0")
    assert asked == [2]


@pytest.mark.parametrize("visible", ["", "-1"])
def test_hidden_gpus_are_not_asked(visible: str) -> None:
    reading = read(FakeNvml(), visible)
    assert (reading.description, reading.problem) == (None, "CUDA_VISIBLE_DEVICES hides all GPUs")


def test_the_binding_is_there() -> None:
    assert hasattr(import_nvml(), "nvmlInit")
