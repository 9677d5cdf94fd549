"""How llama-server is started: under a plan on the device ``XLM0``, or stock on the bare device."""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

from xlm_llamacpp import runtime
from xlm_plugin.backend import LaunchSpec
from xlm_plugin.errors import EngineError, ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xlm_llamacpp.engine import InstalledEngine
    from xlm_plugin.backend import LaunchOptions
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import Plan

EMULATED_LINK_LATENCY_SECONDS = 10e-6
# Repacked weights have other kernels, and a warm-up would count as steps.
EMULATED_ARGUMENTS = ("--no-repack", "--no-warmup")
# The threads of host and emulated device share the cores: those that wait must not spin.
EMULATED_ENVIRONMENT = {"OMP_WAIT_POLICY": "passive"}

# What the plan pays for cannot be changed behind its back, nor where we look for the engine.
_PLANNED = re.compile(
    "-m|--model|-c|--ctx-size|-np|--parallel|-b|--batch-size|-ub|--ubatch-size|-ctk|--cache-type-k|-ctv|"
    "--cache-type-v|-fa|--flash-attn|-dev|--device|-ngl|--gpu-layers|--n-gpu-layers|-fit|--fit|-ot|"
    "--override-tensor|-cmoe|--cpu-moe|-ncmoe|--n-cpu-moe|-nkvo|--no-kv-offload|-kvo|--kv-offload|"
    "--no-op-offload|--op-offload|-sm|--split-mode|-ts|--tensor-split|-mg|--main-gpu|--swa-full|"
    "-kvu|--kv-unified|-mu|--model-url|-hf|-hfr|--hf-repo|-hff|--hf-file|"
    "--host|--port|--api-prefix|--ssl-key-file|--ssl-cert-file"
)


def planned_spec(
    engine: InstalledEngine, plan: Plan, model: ModelGraph, options: LaunchOptions
) -> LaunchSpec:
    """Return how to start llama-server under ``plan``.

    Raises PlanError for a plan of another model or of other tensors, ModelError for a model that is no GGUF
    file, and UsageError for extra arguments that contradict the plan.
    """
    check_extra_arguments(options.extra_arguments)
    plan.check_model(model)
    plan.check_tensors(model)
    if model.format != "gguf":
        raise ModelError(f"{model.path} is not a GGUF file; llama-server runs nothing else.")
    directory = runtime.new_directory()
    host, port = options.host, options.port or _free_port(options.host)
    environment = {
        **_base_environment(engine),
        "XLM_PLAN": str(directory / runtime.PLAN),
        "XLM_DEVICE": plan.device,
        "XLM_SOCKET": str(directory / runtime.SOCKET),
    }
    if plan.emulated:
        environment |= _emulated(plan.budget_bytes, options)
    return LaunchSpec(
        command=(str(engine.server), "--device", "XLM0", *_arguments(plan, model, options, port)),
        environment=environment,
        url=_url(host, port),
        files={directory / runtime.PLAN: plan.to_json()},
        socket=directory / runtime.SOCKET,
        name=options.name,
    )


def stock_spec(engine: InstalledEngine, plan: Plan, model: ModelGraph, options: LaunchOptions) -> LaunchSpec:
    """Return how to start llama-server on the bare device, with equal placement where stock can have it.

    Shards that the plan runs on the CPU in every tier run there too, and are not offloaded for large
    batches. An emulated device is made large enough for the whole model.
    """
    host, port = options.host, options.port or _free_port(options.host)
    environment = _base_environment(engine)
    if plan.emulated:
        environment |= _emulated(plan.budget_bytes + 2 * model.weight_bytes, options)
    overrides = _cpu_overrides(plan)
    return LaunchSpec(
        command=(
            str(engine.server),
            *("--device", plan.device),
            *_arguments(plan, model, options, port),
            *(("-ot", overrides, "--no-op-offload") if overrides else ()),
        ),
        environment=environment,
        url=_url(host, port),
    )


def check_extra_arguments(arguments: Sequence[str]) -> None:
    """Raise UsageError for an engine argument that would change what the plan pays for."""
    for argument in arguments:
        name = argument.split("=", 1)[0]
        # The engine reads --ctx_size as --ctx-size.
        if _PLANNED.fullmatch(name.replace("_", "-")):
            raise UsageError(f"'{name}' cannot be passed on: xlm decides it.", "Use xlm's own options.")


def _arguments(plan: Plan, model: ModelGraph, options: LaunchOptions, port: int) -> list[str]:
    context = plan.context
    arguments = [
        *("--model", str(model.files[0]), "--alias", model.path.stem),
        *("--n-gpu-layers", _device_layers(plan, model), "--fit", "off"),
        *("--ctx-size", str(context.tokens), "--parallel", str(context.sequences)),
        *("--batch-size", str(context.ubatch_tokens), "--ubatch-size", str(context.ubatch_tokens)),
        *("--cache-type-k", context.kv_type_k, "--cache-type-v", context.kv_type_v),
        *("--flash-attn", "on" if context.flash_attention else "off"),
        *("--host", options.host, "--port", str(port), "--no-webui"),
    ]
    if options.threads is not None:
        arguments += ["--threads", str(options.threads)]
    if plan.emulated:
        arguments += EMULATED_ARGUMENTS
    return [*arguments, *options.extra_arguments]


def _device_layers(plan: Plan, model: ModelGraph) -> str:
    # The engine counts from the end, and the output head as a layer.
    return str(model.shape.layers + 1 - plan.host_layers) if plan.host_layers else "all"


def _base_environment(engine: InstalledEngine) -> dict[str, str]:
    # CUDA numbers cards by speed unless told otherwise; the driver's own tools number them by place.
    return {"GGML_BACKEND_PATH": str(engine.library), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def _emulated(memory_bytes: int, options: LaunchOptions) -> dict[str, str]:
    from xlm_plugin.plan.target import EMULATED_LINK_BYTES_PER_S

    link = (options.device and options.device.link_bytes_per_s) or EMULATED_LINK_BYTES_PER_S
    settings = {
        "memory_bytes": memory_bytes,
        "link_bytes_per_s": int(link),
        "link_latency_s": EMULATED_LINK_LATENCY_SECONDS,
    }
    return {
        "XLM_EMULATED": ",".join(f"{name}={value}" for name, value in settings.items()),
        **EMULATED_ENVIRONMENT,
    }


def _cpu_overrides(plan: Plan) -> str:
    """Return the ``-ot`` pattern of all tensors that run on the CPU in every tier, or nothing."""
    tensors = [
        re.escape(tensor)
        for shard in plan.shards
        if all(tier.placements[shard.name] == "cpu" for tier in plan.tiers)
        for tensor in shard.tensors
    ]
    return f"^({'|'.join(tensors)})$=CPU" if tensors else ""


def _url(host: str, port: int) -> str:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _free_port(host: str) -> int:
    try:
        with socket.create_server((host, 0), family=_family(host)) as server:
            return int(server.getsockname()[1])
    except OSError as error:
        reason = error.strerror or error
        raise EngineError(f"Nothing can listen on '{host}': {reason}.", "Try --host 127.0.0.1.") from None


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
