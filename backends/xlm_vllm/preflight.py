"""What can be known before vLLM starts, which takes half a minute: whether it would refuse."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_plugin.errors import EngineError, ModelError, UsageError
from xlm_plugin.model import read_model
from xlm_plugin.model.hf_config import read_json, text_config
from xlm_plugin.plan.target import EMULATED_NAME, choose_profile
from xlm_plugin.plugins import get_plugin_manager
from xlm_plugin.units import format_bytes, parse_bytes
from xlm_vllm.config import XlmConfig, plan_digest
from xlm_vllm.engine_memory import WorkerMemory
from xlm_vllm.flags import EngineRequest
from xlm_vllm.making import make_worker_plan
from xlm_vllm.paging import Paging
from xlm_vllm.ranks import Share, rank_graph
from xlm_vllm.versions import check_version, installed_version, is_cpu_build

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Device
    from xlm_plugin.machine.profile import Profile
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan
    from xlm_plugin.plan.strategy import Objective

_MOST_DEFAULT_TOKENS = 4096


def engine_request(
    *,
    model: str,
    vram: str | None,
    plan_file: Path | None,
    ctx: int | None,
    ubatch: int,
    parallel: int,
    kv: str | None,
    tensor_parallel: int,
    objective: Objective,
    link: float | None,
) -> EngineRequest:
    """Return what to start, having made the plan that the worker will make.

    Raises UsageError, ModelError, PlanError, EngineError and DoesNotFitError where vLLM would not start.
    """
    check_version(installed_version())
    if (vram is None) == (plan_file is None):
        raise UsageError("Give a budget, or a plan, which has one.", "Such as --vram 6GiB.")
    folder = _folder(model)
    graph = read_model(folder)
    on_cpu = is_cpu_build()
    link_bytes_per_s = link * 1e9 if link else None
    profile, device = choose_profile(get_plugin_manager(), _device_name(on_cpu, link))
    config = XlmConfig(objective=objective, link_bytes_per_s=link_bytes_per_s)
    request = EngineRequest(
        model=str(folder),
        config=config,
        budget_bytes=0,
        memory_bytes=device.memory_bytes,
        context_tokens=ctx or min(graph.shape.context_tokens or _MOST_DEFAULT_TOKENS, _MOST_DEFAULT_TOKENS),
        step_tokens=ubatch,
        sequences=parallel,
        kv_bytes=parse_bytes(kv) if kv else None,
        ranks=tensor_parallel,
        on_cpu=on_cpu,
    )
    if plan_file is not None:
        plan = _plan_in(plan_file, graph)
        config = replace(config, plan=plan_file.resolve(), digest=plan_digest(plan))
        return replace(request, config=config, budget_bytes=plan.budget_bytes)
    budget_bytes = parse_bytes(str(vram))
    _check_plan(request, graph, profile, device, budget_bytes)
    return replace(request, config=replace(config, vram_bytes=budget_bytes), budget_bytes=budget_bytes)


def vllm_program() -> str:
    """Return the path of vLLM's command. Raises EngineError where there is none."""
    beside = Path(sys.executable).with_name("vllm")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("vllm")
    if found is None:
        raise EngineError("vLLM's command 'vllm' is not on the PATH.", "Activate vLLM's environment.")
    return found


def _folder(model: str) -> Path:
    path = Path(model).expanduser()
    if not path.is_dir():
        raise ModelError(
            f"There is no folder '{model}'.",
            "Download the model, such as with 'hf download', and name its folder.",
        )
    return path.resolve()


def _device_name(on_cpu: bool, link: float | None) -> str | None:
    if on_cpu:
        return f"{EMULATED_NAME}:{link}" if link else EMULATED_NAME
    if link:
        raise UsageError("Only an emulated device's link can be set.", "Leave out --link.")
    return None


def _plan_in(file: Path, graph: ModelGraph) -> Plan:
    from xlm_plugin.plan.document import Plan

    plan = Plan.read(file)
    plan.check_model(graph)
    return plan


def _check_plan(
    request: EngineRequest, graph: ModelGraph, profile: Profile, device: Device, budget_bytes: int
) -> None:
    """Raise DoesNotFitError where no plan fits, and UsageError where the device has no such budget."""
    if not request.on_cpu and (device.emulated or budget_bytes > device.memory_bytes):
        found = "no GPU" if device.emulated else f"{format_bytes(device.memory_bytes)} of {device.name}"
        raise UsageError(
            f"The budget is {format_bytes(budget_bytes)}, and xlm finds {found}.", "See 'xlm doctor'."
        )
    heads = text_config(read_json(graph.path / "config.json")).get("num_key_value_heads")
    kv_heads = heads if isinstance(heads, int) else None
    ranks = request.ranks
    paging = Paging(request.context_tokens, request.step_tokens, ranks=min(ranks, kv_heads or ranks))
    memory = WorkerMemory(paging, request.sequences, ranks=ranks, kv_bytes=request.kv_bytes)
    own = rank_graph(graph, Share(ranks=ranks, kv_heads=kv_heads))
    objective = request.config.objective
    make_worker_plan(get_plugin_manager(), own, profile, device, memory, budget_bytes, objective)
