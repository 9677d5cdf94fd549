"""From a model and what the user says about it to a plan and an engine that can carry it out."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_plugin.cli._planning import Planned, PlanningOptions, plan_request
from xlm_plugin.errors import EngineError, PluginError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.backend import Backend
    from xlm_plugin.cli._planning import PlanRequest


def planned_from(ref: str, planning: PlanningOptions, plan_file: Path | None) -> Planned:
    """Return the plan in ``plan_file``, or a new one where there is none.

    Raises UsageError where a plan comes with options that it decides itself.
    """
    if plan_file is None:
        return _beside_adapters(ref, plan_request(ref, planning))
    if replace(planning, device=None) != PlanningOptions():
        raise UsageError(
            "--plan decides budget, context and placement.", "Leave out the other planning options."
        )

    from xlm_plugin.model import read_model
    from xlm_plugin.model.resolve import resolve_model
    from xlm_plugin.plan.document import Plan
    from xlm_plugin.plan.target import choose_profile
    from xlm_plugin.plugins import get_plugin_manager

    plan = Plan.read(plan_file)
    model = read_model(resolve_model(ref))
    plan.check_model(model)
    profile, device = choose_profile(get_plugin_manager(), planning.device or plan.device)
    if device.name != plan.device:
        raise UsageError(f"The plan is for {plan.device}, not for {device.name}.", "Leave out --device.")
    return Planned(model, profile, device, plan)


def _beside_adapters(ref: str, request: PlanRequest) -> Planned:
    """Return the plan, which leaves room in its budget for what the engine loads beside the model."""
    from xlm_plugin.errors import DoesNotFitError
    from xlm_plugin.model.resolve import find_stored
    from xlm_plugin.units import format_bytes

    planned = request.planned()
    stored = find_stored(ref)
    if stored is None or not stored.adapters:
        return planned
    budget_bytes, adapter_bytes = planned.plan.budget_bytes, stored.adapter_bytes
    if adapter_bytes >= budget_bytes:
        raise DoesNotFitError(
            f"The model's adapters take {format_bytes(adapter_bytes)}, and the budget is "
            f"{format_bytes(budget_bytes)}.",
            "Give a larger budget with --vram.",
            missing_bytes=adapter_bytes - budget_bytes + 1,
        )
    plan = request.plan(budget_bytes - adapter_bytes)
    return replace(planned, plan=plan.model_copy(update={"budget_bytes": budget_bytes}))


def beside_model(ref: str) -> tuple[str, ...]:
    """Return the engine's arguments for the adapters and the projector of the model that ``ref`` names.

    A projector stays on the CPU: no plan has room for it.
    """
    from xlm_plugin.model.resolve import find_stored

    stored = find_stored(ref)
    if stored is None:
        return ()
    arguments = [part for path in stored.adapters for part in ("--lora", str(path))]
    if stored.projector:
        arguments += ["--mmproj", str(stored.projector), "--no-mmproj-offload"]
    return tuple(arguments)


def engine_name(ref: str) -> str:
    """Return what an engine is called whose model was named by ``ref``: a file's name without its ending."""
    return Path(ref).stem if ref.endswith(".gguf") else Path(ref).name


def ready_backend(planned: Planned) -> Backend:
    """Return the engine adapter, its engine built. Raises EngineError where the engine lacks the device."""
    from xlm_plugin.plugins import get_plugin_manager

    backends = get_plugin_manager().backends()
    if not backends:
        raise PluginError("No plugin brings an engine.", "Let 'llamacpp' through in XLM_LOAD_PLUGINS.")
    probe = backends[0].prepare()
    if probe.problem:
        raise EngineError(f"{probe.engine} cannot be used: {probe.problem}.", "See 'xlm doctor'.")
    names = [device.name for device in probe.devices]
    if not planned.device.emulated and planned.device.name not in names:
        found = f"finds {', '.join(names)}" if names else "finds no device"
        raise EngineError(
            f"{probe.engine} {probe.version} {found}, not {planned.device.name}.",
            "Build an engine for it with 'xlm engine build', or take --device emulated.",
        )
    return backends[0]


@contextmanager
def orderly_end() -> Iterator[None]:
    """Let the block end in order, closing what it opened, when the process is told to go."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    previous = [signal.signal(number, lambda number, _: sys.exit(128 + number)) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, previous, strict=True):
            signal.signal(number, handler)
