"""vLLM's weight offloader interface, carried out by a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.model_executor.offloader.base import BaseOffloader

from xlm_plugin.errors import EngineError, PlanError
from xlm_vllm.copying import open_copy_stream
from xlm_vllm.experts import surround_experts
from xlm_vllm.hooks import activations, surround
from xlm_vllm.host import gated_network, runs_on_host
from xlm_vllm.linears import make_movable
from xlm_vllm.memory import HostMemory
from xlm_vllm.runtime import ShardRuntime
from xlm_vllm.schedule import Action
from xlm_vllm.sublayers import Sublayer, find_sublayers, selects_experts
from xlm_vllm.weights import ShardWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    import torch

    from xlm_plugin.plan.document import Plan
    from xlm_vllm.weights import Packer

# A rank's share of a fused matrix may be padded otherwise than the planner thought.
_LEAST_SHARE = 0.9


class XlmOffloader(BaseOffloader):
    """Surrounds every shard as vLLM builds the layers, and places their weights once those are loaded."""

    runtime: ShardRuntime

    def __init__(
        self,
        plan: Plan,
        device: torch.device,
        *,
        pinned_limit_bytes: int | None = None,
        link_bytes_per_s: float | None = None,
    ) -> None:
        self.plan = plan
        self.device = device
        self.host = HostMemory(device, pinned_limit_bytes)
        self._link_bytes_per_s = link_bytes_per_s
        self._sublayers: list[Sublayer] = []
        self.computing: dict[int, Callable[..., Any]] = {}
        self.computing_routed: dict[int, Callable[..., torch.Tensor]] = {}
        self._packers: dict[int, Sequence[Packer]] = {}
        self._is_sealed = False

    def wrap_modules(
        self,
        modules_generator: Generator[torch.nn.Module, None, None],
        prefix: str = "",  # noqa: ARG002
    ) -> list[torch.nn.Module]:
        """Return the layers with their shards surrounded. What comes after loading (drafts) is left alone."""
        layers = []
        for layer in modules_generator:
            layers.append(layer)
            for sublayer in () if self._is_sealed else find_sublayers(layer):
                self._take(sublayer)
        return layers

    def post_init(self) -> None:
        """Copy the loaded weights to host memory and lay out the device. May be called more than once.

        Raises EngineError where there is nothing to place, PlanError where the plan is for other weights,
        and DoesNotFitError.
        """
        if self._is_sealed:
            return
        self._is_sealed = True
        self._check_names()
        shards = [self._weights(index, sublayer) for index, sublayer in enumerate(self._sublayers)]
        copies = open_copy_stream(self.device, self._link_bytes_per_s)
        self.runtime = ShardRuntime(self.plan, shards, self.device, copies)

    @property
    def crosses(self) -> bool:
        """Whether computing on the host is computing elsewhere than on the device."""
        return self.device.type != "cpu"

    def compute(self, shard: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the module of ``shard`` computes, with its weights where the plan has them."""
        runtime, forward = self.runtime, self.computing[shard]
        if runtime.is_idle:
            return forward(*args, **kwargs)
        x = activations((*args, *kwargs.values()))
        action = runtime.enter(shard, x.shape[0])
        if action is Action.HOST and self.crosses:
            return gated_network(self._sublayers[shard].module, x)
        result = forward(*args, **kwargs)
        runtime.leave(shard)
        return result

    def _take(self, sublayer: Sublayer) -> None:
        index = len(self._sublayers)
        self._sublayers.append(sublayer)
        on_host = any(tier.placements.get(sublayer.name) == "cpu" for tier in self.plan.tiers)
        if on_host and not (runs_on_host(sublayer) if self.crosses else sublayer.kind not in ("attn", "ssm")):
            raise PlanError(
                f"The plan runs shard '{sublayer.name}' on the CPU, where vLLM has no kernels for it.",
                "Make a plan that pins or streams it.",
            )
        if sublayer.kind == "experts":
            surround_experts(self, index, sublayer.module)
        else:
            surround(self, index, sublayer.module, opaque=self.crosses and on_host)
        if not self.crosses:
            self._packers[index] = make_movable(sublayer.linears())
        elif sublayer.name not in self.plan.resident:
            # Layer by layer, so that the device never holds more than the plan gives it.
            for parameter in sublayer.parameters():
                parameter.data = parameter.data.to("cpu")

    def _weights(self, index: int, sublayer: Sublayer) -> ShardWeights:
        weights = ShardWeights(sublayer.name, sublayer.parameters(), self.host, self._packers.get(index, ()))
        planned_bytes = next(shard.bytes for shard in self.plan.shards if shard.name == sublayer.name)
        if not planned_bytes * _LEAST_SHARE <= weights.bytes <= planned_bytes:
            raise PlanError(
                f"Shard '{sublayer.name}' has {weights.bytes} bytes in vLLM and {planned_bytes} in the plan.",
                "Make a new plan for this model, its quantisation and this tensor-parallel size.",
            )
        return weights

    def _check_names(self) -> None:
        if self.plan.host_layers or self.plan.host_kv_layers:
            raise PlanError(
                "The plan keeps layers or KV cache in host memory, which vLLM cannot.",
                "Make a plan for vLLM.",
            )
        if not self._sublayers:
            raise EngineError(
                "vLLM built this model without decoder layers that can be placed.",
                "Run it without --load-format xlm.",
            )
        planned = {shard.name for shard in self.plan.shards}
        found = {sublayer.name for sublayer in self._sublayers}
        if self.plan.expert_cache and not all(map(selects_experts, self._sublayers)):
            raise PlanError(
                "The plan copies selected experts, and vLLM's kernel for this model needs them all.",
                "Make a plan without an expert cache.",
            )
        if missing := sorted(found - planned):
            raise PlanError(
                f"The plan does not place shard '{missing[0]}', which vLLM built.", "Make a new plan."
            )
