"""What the engine takes whatever is resident, and what to say when that alone does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import DoesNotFitError
from xlm_plugin.plan.document import Ledger
from xlm_plugin.plan.memory import estimate
from xlm_plugin.plan.step_costs import EVERYTHING_ON_DEVICE
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import PlannedContext
    from xlm_plugin.plan.step_costs import HostSide

# llama.cpp rounds a context up to this.
CONTEXT_STEP_TOKENS = 256


def fixed_ledger(
    model: ModelGraph, context: PlannedContext, device: Device, host: HostSide = EVERYTHING_ON_DEVICE
) -> Ledger:
    """Return the ledger of ``model`` with no shard resident and no staging, beside what ``host`` keeps."""
    memory = estimate(
        model,
        context,
        device=device,
        host_layers=host.layers,
        host_kv_layers=sorted(layer for layer in host.kv_layers if layer >= host.layers),
    )
    return Ledger(
        resident_weight_bytes=0,
        staging_bytes=0,
        small_weight_bytes=memory.small_weight_bytes,
        kv_bytes=memory.kv_bytes,
        state_bytes=memory.state_bytes,
        compute_bytes=memory.compute_bytes,
        projector_bytes=memory.projector_bytes,
        driver_bytes=memory.driver_bytes,
    )


def require_fit(model: ModelGraph, context: PlannedContext, device: Device, budget_bytes: int) -> None:
    """Raise DoesNotFitError, with what would fit instead, where ``fixed_ledger`` exceeds the budget."""
    needed_bytes = fixed_ledger(model, context, device).total_bytes
    if needed_bytes <= budget_bytes:
        return
    tokens = largest_context(model, context, device, budget_bytes)
    raise DoesNotFitError(
        f"A context of {context.tokens} tokens takes {format_bytes(needed_bytes)} before any weights, "
        f"{format_bytes(needed_bytes - budget_bytes)} more than the budget of {format_bytes(budget_bytes)}.",
        (f"The largest context that fits is {tokens} tokens" if tokens else "No context fits this budget")
        + f"; a context of {context.tokens} needs a budget of at least {_in_mib(needed_bytes)}.",
        missing_bytes=needed_bytes - budget_bytes,
    )


def largest_context(model: ModelGraph, context: PlannedContext, device: Device, budget_bytes: int) -> int:
    """Return the most tokens, up to those of ``context``, whose fixed part fits; 0 where none do."""
    fitting, too_many = 0, -(-context.tokens // CONTEXT_STEP_TOKENS)
    while too_many - fitting > 1:
        steps = (fitting + too_many) // 2
        smaller = context.model_copy(update={"tokens": steps * CONTEXT_STEP_TOKENS})
        if fixed_ledger(model, smaller, device).total_bytes <= budget_bytes:
            fitting = steps
        else:
            too_many = steps
    return fitting * CONTEXT_STEP_TOKENS


def _in_mib(size_bytes: int) -> str:
    return f"{-(-size_bytes // 2**20)}MiB"
