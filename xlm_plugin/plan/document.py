"""The plan document ``xlm.plan/1``: what a planner writes and an engine's device reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationError,
    model_validator,
)

from xlm_plugin.errors import DoesNotFitError, PlanError
from xlm_plugin.model.cache import CacheType  # noqa: TC001  pydantic reads the annotation at run time
from xlm_plugin.plan.compute import HOST_KV_DEVICE_TOKENS
from xlm_plugin.plan.consistency import first_fault
from xlm_plugin.text_files import read_text, write_text
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from xlm_plugin.model.graph import ModelGraph

FORMAT: Final = "xlm.plan/1"

Placement = Literal["pin", "stream", "cpu"]

_UNQUANTISED = ("f16", "bf16", "f32")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedModel(_Frozen):
    """The model that the plan is for. ``fingerprint`` must match the model's own."""

    name: str
    architecture: str
    fingerprint: str
    weight_bytes: int = Field(ge=0)

    @classmethod
    def of(cls, model: ModelGraph) -> PlannedModel:
        """Return what a plan keeps of ``model``."""
        return cls(
            name=model.name,
            architecture=model.architecture,
            fingerprint=model.fingerprint,
            weight_bytes=model.weight_bytes,
        )


class PlannedContext(_Frozen):
    """The context that the plan pays for. ``tokens`` is the total over all sequences.

    With ``host_kv`` KV caches that do not fit may lie in host memory, which takes an engine with xlm's patch.
    Raises PlanError for a quantised V cache without flash attention: no engine runs that.
    """

    tokens: PositiveInt
    sequences: PositiveInt = 1
    ubatch_tokens: PositiveInt = 512
    kv_type_k: CacheType = "f16"
    kv_type_v: CacheType = "f16"
    flash_attention: bool = True
    host_kv: bool = False

    @model_validator(mode="after")
    def _can_run(self) -> PlannedContext:
        if not self.flash_attention and self.kv_type_v not in _UNQUANTISED:
            raise PlanError(
                f"A V cache of type {self.kv_type_v} needs flash attention.",
                "Leave flash attention on, or take f16, bf16 or f32 for V.",
            )
        return self


class PlannedShard(_Frozen):
    """A shard and the tensors that move with it, in execution order.

    ``bytes`` is what it takes on a device, where each tensor is padded. ``experts`` is the number of
    routed experts, of which a step selects some; 0 for all other shards.
    """

    name: str
    bytes: PositiveInt
    tensors: tuple[str, ...] = Field(min_length=1)
    experts: int = Field(default=0, ge=0)


class Prediction(_Frozen):
    """What the planner expects of one step at the tier's upper bound."""

    step_seconds: float = Field(gt=0)
    link_bytes: int = Field(ge=0)


class Tier(_Frozen):
    """The schedule of all steps with at most ``new_tokens`` new tokens (and more than the tier below)."""

    new_tokens: PositiveInt
    strategy: str
    placements: dict[str, Placement]
    prediction: Prediction | None = None


class Staging(_Frozen):
    """The ring of equal slots that streamed shards pass through; 0 slots when nothing streams."""

    slots: int = Field(ge=0)
    slot_bytes: int = Field(ge=0)

    @property
    def bytes(self) -> int:
        """Device bytes of the whole ring."""
        return self.slots * self.slot_bytes


class ExpertCache(_Frozen):
    """Device memory for ``experts`` routed experts of any layer, of ``expert_bytes`` each.

    In tiers below ``whole_from_tokens`` a streamed shard of routed experts copies only what the step
    selects and keeps what is selected often; from there on it streams whole.
    """

    experts: PositiveInt
    expert_bytes: PositiveInt
    whole_from_tokens: PositiveInt

    @property
    def bytes(self) -> int:
        """Device bytes of the whole cache."""
        return self.experts * self.expert_bytes


class Ledger(_Frozen):
    """Where every byte of the budget goes. ``small_weight_bytes`` are norms, routers and the like."""

    resident_weight_bytes: int = Field(ge=0)
    small_weight_bytes: int = Field(ge=0)
    staging_bytes: int = Field(ge=0)
    expert_cache_bytes: int = Field(default=0, ge=0)
    kv_bytes: int = Field(ge=0)
    state_bytes: int = Field(ge=0)
    compute_bytes: int = Field(ge=0)
    projector_bytes: int = Field(default=0, ge=0)
    driver_bytes: int = Field(default=0, ge=0)

    @property
    def total_bytes(self) -> int:
        """All bytes that the plan takes from the budget."""
        return sum(getattr(self, name) for name in type(self).model_fields)


class Plan(_Frozen):
    """All tiers for one model, machine, context and budget.

    A shard that any tier pins is resident in all of them. Tensors that no shard names stay on the
    device (``small_weight_bytes``). The first ``host_layers`` layers stay on the host whole: weights,
    caches and computing. ``host_kv_layers`` are later layers whose KV cache lies in host memory, which takes
    an engine with xlm's patch: the CPU attends to it there, and in steps of ``host_kv_device_tokens`` and
    more it is copied to the device, one layer at a time, for attention. Raises PlanError where the document
    contradicts itself and DoesNotFitError where it takes more than its budget.
    """

    format: Literal["xlm.plan/1"] = FORMAT
    model: PlannedModel
    device: str
    emulated: bool = False
    context: PlannedContext
    budget_bytes: PositiveInt
    ledger: Ledger
    staging: Staging
    expert_cache: ExpertCache | None = None
    host_layers: int = Field(default=0, ge=0)
    host_kv_layers: tuple[NonNegativeInt, ...] = ()
    host_kv_device_tokens: PositiveInt = HOST_KV_DEVICE_TOKENS
    shards: tuple[PlannedShard, ...]
    tiers: tuple[Tier, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Plan:
        if fault := first_fault(self):
            raise _malformed(fault)
        missing_bytes = self.ledger.total_bytes - self.budget_bytes
        if missing_bytes > 0:
            raise DoesNotFitError(
                f"The plan takes {format_bytes(self.ledger.total_bytes)}, {missing_bytes} bytes more than "
                f"its budget of {format_bytes(self.budget_bytes)}.",
                "Make a new one with 'xlm plan'.",
                missing_bytes=missing_bytes,
            )
        return self

    @property
    def resident(self) -> frozenset[str]:
        """Names of the shards that stay on the device: those that any tier pins."""
        return frozenset(
            name for tier in self.tiers for name, found in tier.placements.items() if found == "pin"
        )

    @property
    def streamed(self) -> frozenset[str]:
        """Names of the shards that pass through staging, whole, in some tier."""
        return frozenset(
            shard.name
            for shard in self.shards
            for tier in self.tiers
            if tier.placements.get(shard.name) == "stream" and not self.selects_experts(shard, tier)
        )

    def selects_experts(self, shard: PlannedShard, tier: Tier) -> bool:
        """Whether ``shard``, where it streams in ``tier``, copies only the experts that the step selects."""
        cache = self.expert_cache
        return cache is not None and shard.experts > 0 and tier.new_tokens < cache.whole_from_tokens

    @property
    def is_stock(self) -> bool:
        """Whether everything fits, so that the engine runs as it would without a plan."""
        return all(tier.strategy == "stock" for tier in self.tiers)

    def tier_for(self, new_tokens: int) -> Tier:
        """Return the smallest tier that covers ``new_tokens``, or the last one."""
        return next((tier for tier in self.tiers if new_tokens <= tier.new_tokens), self.tiers[-1])

    def check_model(self, model: ModelGraph) -> None:
        """Raise PlanError unless the plan was made for ``model``."""
        if self.model.fingerprint != model.fingerprint:
            raise PlanError(
                f"The plan is for another model: it was made for '{self.model.name}' "
                f"({_brief(self.model.fingerprint)}), this is '{model.name}' ({_brief(model.fingerprint)}).",
                "Make a new one with 'xlm plan'.",
            )

    def check_tensors(self, model: ModelGraph) -> None:
        """Raise PlanError unless the plan places all tensors of ``model`` that can move, and no others."""
        placed = {tensor for shard in self.shards for tensor in shard.tensors}
        if unknown := sorted(placed - model.movable_tensors):
            raise _malformed(f"it places '{unknown[0]}', which is no tensor of the model that can move")
        if missing := sorted(model.movable_tensors - placed):
            raise _malformed(f"it leaves out the tensor '{missing[0]}'")

    def to_json(self) -> str:
        """Return the document as indented JSON, ending in a newline."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return the plan in ``text``.

        Raises PlanError with the first fault found, and DoesNotFitError for a plan over its budget.
        """
        try:
            document = json.loads(text)
        except ValueError as error:
            raise _malformed(f"it is not JSON ({error})") from None
        except RecursionError:
            raise _malformed("it is nested too deeply") from None
        if not isinstance(document, dict):
            raise _malformed("it is not a JSON object")
        found = document.get("format")
        if found != FORMAT:
            raise PlanError(
                f"The plan is of version '{found}'; this xlm reads only '{FORMAT}'."
                if found
                else f"This is not a plan: it has no format, such as '{FORMAT}'.",
                "Make a new one with 'xlm plan'.",
            )
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise _malformed(_sentence(error.errors(include_url=False)[0])) from None

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Return the plan in the file ``path``. Raises like ``from_json``, and where it is unreadable."""
        return cls.from_json(read_text(path, "plan", PlanError))

    def write(self, path: Path) -> None:
        """Write the document to ``path``, whole or not at all. Raises PlanError where that fails."""
        write_text(path, self.to_json(), "plan", PlanError)


def _malformed(fault: str) -> PlanError:
    return PlanError(f"The plan cannot be used: {fault}.", "Make a new one with 'xlm plan'.")


def _sentence(fault: ErrorDetails) -> str:
    where = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "literal_error":
        return f"{where} is '{fault['input']}', which is not {fault['ctx']['expected']}"
    message = fault["msg"][0].lower() + fault["msg"][1:]
    return f"{where}: {message}"


def _brief(fingerprint: str) -> str:
    return fingerprint[: len("sha256:") + 12]
