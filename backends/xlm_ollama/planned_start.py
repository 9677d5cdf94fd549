"""From a start that Ollama wants to the same start under a plan."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_llamacpp.launch import EMULATED_ENVIRONMENT
from xlm_ollama.plans import PlanWanted, find_or_make, say
from xlm_ollama.request import StartRequest
from xlm_plugin.errors import EngineError, UsageError
from xlm_plugin.machine.document import Device
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from xlm_ollama.option import Option

DEVICES = "XLM_START_DEVICES"
EMULATED = "XLM_EMULATED"


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """What llama-server is to begin anew with. Variables with an empty value are taken away."""

    arguments: Sequence[str]
    environment: Mapping[str, str]


def planned_start(arguments: Sequence[str], environment: Mapping[str, str]) -> PlannedStart:
    """Return the start with ``arguments`` under a plan. Raises an XlmError that says why there is none."""
    request = StartRequest.parse(arguments)
    option = request.option
    if request.is_for_cpu:
        raise UsageError("The model has num_gpu 0, which keeps it on the CPU.")
    device = _device(request, environment)
    wanted = PlanWanted(request.model, option, request.context, device, request.adapters)
    _say_what_is_short(option, device)
    _, plan_file = find_or_make(wanted)
    directory = _runtime_directory(plan_file, request, option)
    return PlannedStart(
        request.planned(emulated=device.emulated),
        {
            **{name: "" for name in environment if name.startswith("LLAMA_ARG_")},
            **(EMULATED_ENVIRONMENT if device.emulated else {}),
            **directory,
            "XLM_DEVICE": device.name,
        },
    )


def devices(environment: Mapping[str, str]) -> tuple[Device, ...]:
    """Return the devices that the engine has found. Raises EngineError where it names none."""
    try:
        found = json.loads(environment.get(DEVICES, "[]"))
        return tuple(_described(entry, environment) for entry in found if entry["total_bytes"])
    except (ValueError, TypeError, KeyError):
        raise EngineError(f"{DEVICES} is no list of devices.") from None


def _described(entry: Mapping[str, object], environment: Mapping[str, str]) -> Device:
    emulated = EMULATED in environment
    return Device(
        name=str(entry["name"]),
        description=str(entry["description"]),
        memory_bytes=int(str(entry["total_bytes"])),
        free_bytes=int(str(entry["free_bytes"])),
        emulated=emulated,
        link_bytes_per_s=_emulated_link(environment[EMULATED]) if emulated else None,
    )


def _emulated_link(settings: str) -> float:
    pairs = dict(pair.partition("=")[::2] for pair in settings.split(","))
    return float(pairs["link_bytes_per_s"])


def _device(request: StartRequest, environment: Mapping[str, str]) -> Device:
    found = devices(environment)
    if not found:
        raise EngineError("Ollama finds no accelerator.")
    index = request.gpu_index
    if index is None:
        return max(found, key=lambda device: device.free_bytes)
    if index >= len(found):
        raise UsageError(f"The model has main_gpu {index}, and there are {len(found)} devices.")
    return found[index]


def _say_what_is_short(option: Option, device: Device) -> None:
    wanted_bytes = option.budget_bytes or 0
    if wanted_bytes > device.free_bytes:
        say(
            f"{device.name} has {format_bytes(device.free_bytes)} free, less than the budget of "
            f"{format_bytes(wanted_bytes)}"
        )


def _runtime_directory(plan_file: Path, request: StartRequest, option: Option) -> dict[str, str]:
    """Make this engine's runtime directory and return the variables that name what is in it.

    With its plan and a record in there, ``xlm ps``, ``xlm budget`` and ``xlm park`` find it.
    """
    from xlm_llamacpp import runtime
    from xlm_plugin.text_files import read_text, write_text

    directory = runtime.new_directory()
    runtime.create(directory)
    plan = directory / runtime.PLAN
    try:
        write_text(plan, read_text(plan_file, "plan", EngineError), "plan", EngineError)
        # We are asked by the engine itself, which goes on in the same process.
        name = f"ollama:{option.base}" if option.base else ""
        runtime.write_record(directory, os.getppid(), f"http://127.0.0.1:{request.value('--port')}", name)
    except BaseException:
        runtime.remove(directory)
        raise
    return {"XLM_PLAN": str(plan), "XLM_SOCKET": str(directory / runtime.SOCKET)}
