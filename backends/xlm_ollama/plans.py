"""Plans for Ollama's models, kept so that a model is planned once for each way that it is started."""

from __future__ import annotations

import hashlib
import json
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from xlm_plugin.cache import cache_root
from xlm_plugin.errors import DoesNotFitError, ModelError
from xlm_plugin.units import MIB, format_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_ollama.option import Option
    from xlm_ollama.request import StartContext
    from xlm_plugin.machine.document import Device
    from xlm_plugin.plan.document import Plan

# Part of what a plan is known by: raised when plans come out otherwise from the same request.
_GENERATION = 1
# What is free varies a little from start to start; plans for it should not.
_AUTO_STEP_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class PlanWanted:
    """A start to plan: a model with its option, a context, and the device as it is now.

    ``adapters`` are the model's own ones, which lie beside its weights.
    """

    model: Path
    option: Option
    context: StartContext
    device: Device
    adapters: tuple[Path, ...] = ()

    @property
    def budget_bytes(self) -> int:
        """The option's budget, but no more than is free. Raises UsageError where nothing is free."""
        from xlm_plugin.plan.target import budget_for

        wanted_bytes = self.option.budget_bytes
        if wanted_bytes is not None and (self.device.asleep or self.device.free_bytes > 0):
            return wanted_bytes if self.device.asleep else min(wanted_bytes, self.device.free_bytes)
        # An emulated device of a running engine has a memory of its own, unlike one that is yet to be made.
        budget_bytes = budget_for(replace(self.device, emulated=False))
        return budget_bytes // _AUTO_STEP_BYTES * _AUTO_STEP_BYTES or budget_bytes

    @property
    def digest(self) -> str:
        """What a plan for this start is known by. Raises ModelError where the model's file is gone."""
        wanted = {
            "generation": _GENERATION,
            "files": [_identity(path) for path in (self.model, *self.adapters)],
            "objective": self.option.objective,
            "budget_bytes": self.budget_bytes,
            "context": asdict(self.context),
            "device": [self.device.name, self.device.description, self.device.link_bytes_per_s],
        }
        return hashlib.sha256(json.dumps(wanted).encode()).hexdigest()

    @property
    def file(self) -> Path:
        """Where the plan for this start is kept, once it is made."""
        return cache_root() / "ollama" / "plans" / f"{self.digest}.json"


def find_or_make(wanted: PlanWanted) -> tuple[Plan, Path]:
    """Return the plan for ``wanted`` and its file, made first where there is none that can be used.

    Says on stderr what it does. Raises what ``make`` raises, and PlanError where the plan cannot be kept.
    """
    from xlm_plugin.errors import XlmError
    from xlm_plugin.plan.document import Plan

    path = wanted.file
    if path.exists():
        with suppress(XlmError):
            return Plan.read(path), path
    plan = make(wanted)
    # Where that fails, writing the plan says so in a sentence.
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    plan.write(path)
    return plan, path


def make(wanted: PlanWanted) -> Plan:
    """Return a new plan for ``wanted``.

    Raises DoesNotFitError, ModelError, PlanError, PluginError or UsageError where there can be none.
    """
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model import read_model
    from xlm_plugin.plan.document import PlannedContext
    from xlm_plugin.plan.make import make_plan
    from xlm_plugin.plan.target import describe_machine
    from xlm_plugin.plugins import get_plugin_manager

    budget_bytes = wanted.budget_bytes
    model = read_model(wanted.model)
    say(f"planning {model.name} for {format_bytes(budget_bytes)} of {wanted.device.name}")
    manager = get_plugin_manager()
    profile = Profile(replace(describe_machine(manager), device=wanted.device))
    context = PlannedContext(**asdict(wanted.context))
    adapter_bytes = sum(path.stat().st_size for path in wanted.adapters)
    left_bytes = budget_bytes - adapter_bytes
    if left_bytes <= 0:
        raise DoesNotFitError(
            f"The model's adapters take {format_bytes(adapter_bytes)}, all of the budget of "
            f"{format_bytes(budget_bytes)}.",
            "Give it a larger budget.",
            missing_bytes=1 - left_bytes,
        )
    plan = make_plan(manager, model, profile, context, left_bytes, wanted.option.objective)
    return plan.model_copy(update={"budget_bytes": budget_bytes})


def say(line: str) -> None:
    """Tell who waits for the start how far it is."""
    print(line, file=sys.stderr, flush=True)


def _identity(path: Path) -> list[object]:
    """Return what tells this file from another one at the same place. Ollama's names are digests."""
    try:
        found = path.stat()
    except OSError as fault:
        raise ModelError(f"The model's file {path} cannot be read: {fault.strerror or fault}.") from None
    return [path.name, found.st_size, found.st_mtime_ns]
