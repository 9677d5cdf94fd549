"""The ``xlm`` part of vLLM's ``--additional-config``: what a user asks of one engine."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from xlm_plugin.errors import UsageError
from xlm_plugin.plan.strategy import Objective
from xlm_plugin.units import parse_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from xlm_plugin.plan.document import Plan


@dataclass(frozen=True)
class XlmConfig:
    """What one engine is asked to keep to. Every value may be left out.

    ``vram_bytes`` is the budget of each worker. ``plan`` is a plan document or the file of one, whose
    ``digest`` ("sha256:...") vLLM puts into the key of its compile cache with the rest of this. Without a
    plan, one is made at load for ``objective``. ``pinned_limit_bytes`` bounds pinned host memory.
    ``link_bytes_per_s`` is the speed of an emulated device's link.
    """

    vram_bytes: int | None = None
    plan: Path | Mapping[str, Any] | None = None
    digest: str | None = None
    objective: Objective = "e2e"
    pinned_limit_bytes: int | None = None
    link_bytes_per_s: float | None = None

    def additional(self) -> dict[str, Any]:
        """Return the JSON object that ``read_config`` reads as this, under its key ``xlm``."""
        asked = {}
        for key, (name, _) in _KEYS.items():
            value = getattr(self, name)
            if value != getattr(_NOTHING, name):
                asked[key] = str(value) if isinstance(value, Path) else value
        return {"xlm": asked}

    def read_plan(self) -> Plan | None:
        """Return the plan that is named, if any. Raises PlanError, also where its digest is another."""
        if self.plan is None:
            return None

        import json

        from xlm_plugin.errors import PlanError
        from xlm_plugin.plan.document import Plan

        plan = Plan.read(self.plan) if isinstance(self.plan, Path) else Plan.from_json(json.dumps(self.plan))
        if self.digest not in (None, plan_digest(plan)):
            raise PlanError(
                f"The plan {self.plan} is not the one that these vLLM flags were made for.",
                "Make them anew with 'xlm vllm args'.",
            )
        return plan


def plan_digest(plan: Plan) -> str:
    """Return the digest of a plan's content, whatever its layout in a file: ``"sha256:..."``."""
    from hashlib import sha256

    return f"sha256:{sha256(plan.model_dump_json().encode()).hexdigest()}"


def read_config(additional: object) -> XlmConfig:
    """Return the ``xlm`` part of vLLM's additional configuration.

    Raises UsageError where there is none, for keys that are not known, and for values that make no sense.
    """
    asked = additional.get("xlm") if isinstance(additional, dict) else None
    if not isinstance(asked, dict):
        raise UsageError(
            "vLLM was told to load through xlm, but not how.",
            """Give it --additional-config '{"xlm": {"vram": "6GiB"}}'.""",
        )
    for key in asked:
        if key not in _KEYS:
            raise UsageError(f"The vLLM option xlm.{key} is not known.", _nearest(str(key)))
    values = {_KEYS[key][0]: _KEYS[key][1](key, value) for key, value in asked.items() if value is not None}
    config = XlmConfig(**values)
    if config.plan is not None and config.vram_bytes is not None:
        raise UsageError(
            "The vLLM option xlm.plan decides the budget; xlm.vram cannot be given too.", "Leave out one."
        )
    return config


def _nearest(key: str) -> str:
    near = get_close_matches(key, _KEYS, n=1, cutoff=0.4)
    return f"Did you mean xlm.{near[0]}?" if near else f"Known are: {', '.join(_KEYS)}."


def _size(key: str, value: object) -> int:
    if isinstance(value, str):
        return parse_bytes(value)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise _wrong(key, value, "a size such as 6GiB, or a number of bytes")
    return value


def _speed(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise _wrong(key, value, "a number of bytes per second")
    return float(value)


def _plan(key: str, value: object) -> Path | dict[str, Any]:
    if isinstance(value, str) and value:
        return Path(value).expanduser()
    if not isinstance(value, dict):
        raise _wrong(key, value, "the file of a plan")
    return value


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(key, value, "text")
    return value


def _objective(key: str, value: object) -> object:
    if value not in get_args(Objective):
        raise _wrong(key, value, f"one of {', '.join(get_args(Objective))}")
    return value


def _wrong(key: str, value: object, wanted: str) -> UsageError:
    return UsageError(f"The vLLM option xlm.{key} cannot be {value!r}.", f"Give {wanted}.")


_KEYS: dict[str, tuple[str, Callable[[str, object], Any]]] = {
    "vram": ("vram_bytes", _size),
    "plan": ("plan", _plan),
    "digest": ("digest", _text),
    "objective": ("objective", _objective),
    "pinned_limit_bytes": ("pinned_limit_bytes", _size),
    "link_bytes_per_s": ("link_bytes_per_s", _speed),
}
_NOTHING = XlmConfig()
