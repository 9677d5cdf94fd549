"""A plan for one vLLM worker: the planner's, within what vLLM itself leaves of the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.errors import DoesNotFitError
from xlm_plugin.plan.document import Plan, PlannedContext
from xlm_plugin.plan.make import make_plan
from xlm_plugin.plan.memory import estimate
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Device
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.cache import CacheType
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Ledger
    from xlm_plugin.plan.strategy import Objective
    from xlm_plugin.plugins import PluginManager
    from xlm_vllm.engine_memory import WorkerMemory

# vLLM's attention runs where its KV cache lies: what is not resident streams.
_STRATEGY = "gpu_only"


def planned_context(memory: WorkerMemory) -> PlannedContext:
    """Return the context in which steps are predicted: one sequence of full length."""
    paging = memory.paging
    kv_type: CacheType = "f32" if paging.element_bytes == 4 else "f16"
    return PlannedContext(
        tokens=paging.context_tokens, ubatch_tokens=paging.step_tokens, kv_type_k=kv_type, kv_type_v=kv_type
    )


def make_worker_plan(
    manager: PluginManager,
    model: ModelGraph,
    profile: Profile,
    device: Device,
    memory: WorkerMemory,
    budget_bytes: int,
    objective: Objective = "e2e",
) -> Plan:
    """Return the plan of a worker that has ``model``.

    Planners count by llama.cpp's rules. What vLLM takes otherwise comes off their budget, and the ledger
    says what it is. Raises DoesNotFitError, and what planners raise.
    """
    context = planned_context(memory)
    own = memory.ledger(model, context, device)
    if own.total_bytes >= budget_bytes:
        raise _too_small(own, budget_bytes)
    theirs_bytes = estimate(model, context, device=device).fixed_bytes
    plan = make_plan(
        manager,
        model,
        profile,
        context,
        budget_bytes - own.total_bytes + theirs_bytes,
        objective,
        _STRATEGY,
    )
    if plan.host_layers or plan.host_kv_layers:
        raise _too_small(own, budget_bytes)
    placed = ("resident_weight_bytes", "staging_bytes", "expert_cache_bytes")
    ledger = own.model_copy(update={name: getattr(plan.ledger, name) for name in placed})
    ours = plan.model_copy(update={"ledger": ledger, "budget_bytes": budget_bytes})
    return Plan.from_json(ours.to_json())


def _too_small(own: Ledger, budget_bytes: int) -> DoesNotFitError:
    return DoesNotFitError(
        f"vLLM takes {format_bytes(own.total_bytes)} before any weights are placed "
        f"({format_bytes(own.kv_bytes)} KV cache, {format_bytes(own.compute_bytes)} computing, "
        f"{format_bytes(own.small_weight_bytes)} embeddings and norms), and the budget is "
        f"{format_bytes(budget_bytes)}.",
        "Give it more, a smaller --max-model-len, or a smaller --max-num-batched-tokens.",
        missing_bytes=max(1, own.total_bytes - budget_bytes),
    )
