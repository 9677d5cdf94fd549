"""The plan document ``xlm.plan/1``: what a planner writes and an engine's device reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator

from xlm_plugin.errors import PlanError
from xlm_plugin.model.cache import CacheType  # noqa: TC001  pydantic reads the annotation at run time

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = "xlm.plan/1"

Placement = Literal["pin", "stream", "cpu"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PlannedModel(_Frozen):
    """The model that the plan is for. ``fingerprint`` must match the model's own."""

    name: str
    architecture: str
    fingerprint: str
    weight_bytes: int = Field(ge=0)


class PlannedContext(_Frozen):
    """The context that the plan pays for. ``tokens`` is the total over all sequences."""

    tokens: PositiveInt
    sequences: PositiveInt = 1
    ubatch_tokens: PositiveInt = 512
    kv_type_k: CacheType = "f16"
    kv_type_v: CacheType = "f16"
    flash_attention: bool = True


class PlannedShard(_Frozen):
    """A shard and the tensors that move with it, in execution order."""

    name: str
    bytes: PositiveInt
    tensors: tuple[str, ...] = Field(min_length=1)


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


class Ledger(_Frozen):
    """Where every byte of the budget goes. ``small_weight_bytes`` are norms, routers and the like."""

    resident_weight_bytes: int = Field(ge=0)
    small_weight_bytes: int = Field(ge=0)
    staging_bytes: int = Field(ge=0)
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
    device (``small_weight_bytes``). Raises PlanError (through ``read`` and ``from_json``) where the
    document contradicts itself.
    """

    format: Literal["xlm.plan/1"] = FORMAT
    model: PlannedModel
    device: str
    emulated: bool = False
    context: PlannedContext
    budget_bytes: PositiveInt
    ledger: Ledger
    staging: Staging
    shards: tuple[PlannedShard, ...]
    tiers: tuple[Tier, ...] = Field(min_length=1)
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Plan:
        names = [shard.name for shard in self.shards]
        if len(set(names)) != len(names):
            raise ValueError("two shards have the same name")
        edges = [tier.new_tokens for tier in self.tiers]
        if edges != sorted(set(edges)):
            raise ValueError("the tiers' new_tokens do not rise")
        for tier in self.tiers:
            if unknown := sorted(set(tier.placements) - set(names)):
                raise ValueError(f"tier {tier.new_tokens} places an unknown shard '{unknown[0]}'")
            if missing := [name for name in names if name not in tier.placements]:
                raise ValueError(f"tier {tier.new_tokens} does not place shard '{missing[0]}'")
        if self.ledger.total_bytes > self.budget_bytes:
            missing_bytes = self.ledger.total_bytes - self.budget_bytes
            raise ValueError(f"the plan takes {missing_bytes} bytes more than its budget")
        return self

    def tier_for(self, new_tokens: int) -> Tier:
        """Return the smallest tier that covers ``new_tokens``, or the last one."""
        return next((tier for tier in self.tiers if new_tokens <= tier.new_tokens), self.tiers[-1])

    def to_json(self) -> str:
        """Return the document as indented JSON, ending in a newline."""
        return self.model_dump_json(indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Return the plan in ``text``. Raises PlanError with the first fault found."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in fault["loc"]) or "the document"
            raise PlanError(
                f"The plan cannot be used: {where}: {fault['msg']}.", "Make a new one with 'xlm plan'."
            ) from None

    @classmethod
    def read(cls, path: Path) -> Plan:
        """Return the plan in the file ``path``. Raises PlanError when it is unreadable or wrong."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise PlanError(f"The plan {path} cannot be read: {error}.") from None
        return cls.from_json(text)
