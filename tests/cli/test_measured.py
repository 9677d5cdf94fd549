"""What a run says it measured."""

from __future__ import annotations

from dataclasses import replace

from xlm_plugin.backend import Completion, LaunchOptions
from xlm_plugin.cli._measured import measured_lines
from xlm_plugin.testing import FakeBackend, fake_device, tiny_model, tiny_plan

COMPLETION = Completion("text", (1,), (-0.1,), 5, 100.0, 10.0)


def test_a_device_that_reports_no_memory_is_not_said_to_hold_nothing() -> None:
    device = fake_device()
    plan = tiny_plan(tiny_model())
    backend = FakeBackend(device)
    with backend.start(backend.launch_spec(plan, tiny_model(), LaunchOptions())) as engine:
        stats = backend.control(engine).stats()
    counted, uncounted = (
        next(measured_lines(device, COMPLETION, replace(stats, device_bytes=taken))) for taken in (2**20, 0)
    )
    assert counted.endswith(f"{device.name} 1.00 MiB")
    assert uncounted.endswith(f"{device.name} does not say what it holds")
