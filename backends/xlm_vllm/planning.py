"""The plan that a worker carries out: the one it was given, or one that is made as it loads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from xlm_plugin.errors import DoesNotFitError, PlanError, UsageError
from xlm_plugin.model import read_model
from xlm_plugin.plan.target import EMULATED_NAME, choose_profile
from xlm_plugin.plugins import get_plugin_manager
from xlm_plugin.units import format_bytes
from xlm_vllm.engine_memory import WorkerMemory
from xlm_vllm.making import make_worker_plan
from xlm_vllm.paging import BLOCK_TOKENS, Paging
from xlm_vllm.ranks import PLACED_KINDS, Share, rank_graph
from xlm_vllm.refusals import refuse
from xlm_vllm.versions import check_version, installed_version

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan
    from xlm_vllm.config import XlmConfig

# vLLM's fused matrices are padded otherwise than a checkpoint's.
_LEAST_SHARE = 0.9


def plan_for(vllm_config: Any, config: XlmConfig) -> Plan:
    """Return the plan of this worker, and let vLLM's cache take what it says.

    Raises PlanError for a plan of another model or share of it, UsageError and EngineError for what cannot
    be combined, and DoesNotFitError.
    """
    check_version(installed_version())
    refuse(vllm_config)
    model = worker_model(vllm_config)
    plan = config.read_plan()
    if plan is None:
        plan = _make(vllm_config, config, model)
    plan.check_model(model)
    _check_share(plan, model, vllm_config.parallel_config.tensor_parallel_size)
    _reserve_cache(plan, vllm_config.cache_config)
    return plan


def worker_model(vllm_config: Any) -> ModelGraph:
    """Return the model as this worker has it."""
    model_config, parallel = vllm_config.model_config, vllm_config.parallel_config
    layers = None
    if parallel.pipeline_parallel_size > 1:
        layers = range(*model_config.get_layers_start_end_indices(parallel))
    share = Share(
        ranks=parallel.tensor_parallel_size,
        layers=layers,
        element_bytes=model_config.dtype.itemsize,
        kv_heads=model_config.get_total_num_kv_heads(),
    )
    return rank_graph(read_model(_folder(vllm_config)), share)


def worker_memory(vllm_config: Any) -> WorkerMemory:
    """Return how this worker is set up."""
    model_config, scheduler = vllm_config.model_config, vllm_config.scheduler_config
    cache, ranks = vllm_config.cache_config, vllm_config.parallel_config.tensor_parallel_size
    element_bytes = model_config.dtype.itemsize
    paging = Paging(
        context_tokens=model_config.max_model_len,
        step_tokens=scheduler.max_num_batched_tokens,
        block_tokens=cache.block_size or BLOCK_TOKENS,
        element_bytes=1 if str(cache.cache_dtype).startswith("fp8") else element_bytes,
        ranks=min(ranks, model_config.get_total_num_kv_heads() or ranks),
    )
    return WorkerMemory(
        paging,
        sequences=scheduler.max_num_seqs,
        element_bytes=element_bytes,
        ranks=ranks,
        kv_bytes=cache.kv_cache_memory_bytes,
        captures_graphs=not model_config.enforce_eager,
    )


def _folder(vllm_config: Any) -> Path:
    """Return where the checkpoint lies, fetched as vLLM's own loader would where it is a hub's name."""
    name = vllm_config.model_config.model
    if Path(name).exists():
        return Path(name)
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            name,
            revision=vllm_config.model_config.revision,
            cache_dir=vllm_config.load_config.download_dir,
            allow_patterns=["*.json", "*.safetensors"],
        )
    )


def _make(vllm_config: Any, config: XlmConfig, model: ModelGraph) -> Plan:
    emulated = vllm_config.device_config.device_type == "cpu"
    manager = get_plugin_manager()
    speed = f":{config.link_bytes_per_s / 1e9}" if config.link_bytes_per_s else ""
    profile, device = choose_profile(manager, f"{EMULATED_NAME}{speed}" if emulated else None)
    if not emulated and device.emulated:
        raise UsageError("xlm finds no GPU on this machine, and vLLM runs on one.", "See 'xlm doctor'.")
    budget_bytes = config.vram_bytes
    if budget_bytes is None:
        if emulated:
            raise UsageError(
                "A device that is emulated has no memory of its own to take a share of.",
                """Give a budget: --additional-config '{"xlm": {"vram": "6GiB"}}'.""",
            )
        budget_bytes = int(device.memory_bytes * vllm_config.cache_config.gpu_memory_utilization)
    if not emulated and budget_bytes > device.memory_bytes:
        raise UsageError(
            f"The budget of {format_bytes(budget_bytes)} is more than the "
            f"{format_bytes(device.memory_bytes)} that {device.name} has.",
            "Give a smaller xlm.vram.",
        )
    memory = worker_memory(vllm_config)
    return make_worker_plan(manager, model, profile, device, memory, budget_bytes, config.objective)


def _check_share(plan: Plan, model: ModelGraph, ranks: int) -> None:
    """Raise PlanError where the plan's shards are those of more or fewer ranks."""
    own = {shard.name: shard.movable_bytes for shard in model.shards if shard.kind in PLACED_KINDS}
    planned_bytes = sum(shard.bytes for shard in plan.shards if shard.name in own)
    own_bytes = sum(own[shard.name] for shard in plan.shards if shard.name in own)
    if planned_bytes and not _LEAST_SHARE <= own_bytes / planned_bytes <= 1 / _LEAST_SHARE:
        raise PlanError(
            f"The plan is for other shares of the weights than a tensor-parallel size of {ranks} makes: "
            f"{format_bytes(planned_bytes)} of each worker, not {format_bytes(own_bytes)}.",
            "Make a new one, or leave out xlm.plan and give xlm.vram.",
        )


def _reserve_cache(plan: Plan, cache_config: Any) -> None:
    """Let vLLM take for its cache what the plan says, and not all that is free."""
    planned_bytes = plan.ledger.kv_bytes + plan.ledger.state_bytes
    asked_bytes = cache_config.kv_cache_memory_bytes
    if asked_bytes is None:
        cache_config.kv_cache_memory_bytes = planned_bytes or None
    elif planned_bytes and asked_bytes > planned_bytes:
        raise DoesNotFitError(
            f"vLLM was told to take {format_bytes(asked_bytes)} for its cache, and the plan has "
            f"{format_bytes(planned_bytes)}.",
            "Leave out --kv-cache-memory-bytes, or make a new plan.",
            missing_bytes=asked_bytes - planned_bytes,
        )
