"""What a vLLM worker takes of its device beside the weights that a plan places."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.plan.document import Ledger
from xlm_plugin.plan.driver import CONTEXT_BYTES
from xlm_plugin.plan.memory import estimate
from xlm_plugin.units import MIB
from xlm_vllm.ranks import recurrent_layers

if TYPE_CHECKING:
    from xlm_plugin.machine.document import Device
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import PlannedContext
    from xlm_vllm.paging import Paging

# Not measured here, where no GPU is: what capturing took in vLLM's own logs of 7B models.
GRAPH_BYTES = 512 * MIB
# The residual, its normed copy and the sub-layer's output.
_ROWS = 3
# Gate and up as one, and their product.
_GATED = 3
# Logits in float32, their sorted copy and the probabilities, when the sampler warms up.
_LOGIT_COPIES = 3
_FLOAT = 4


@dataclass(frozen=True, slots=True)
class WorkerMemory:
    """How one worker is set up.

    ``sequences`` run at once, and ``ranks`` share each layer. ``kv_bytes`` is what vLLM was told to take for
    its cache; None is as little as it accepts. ``captures_graphs`` is whether CUDA graphs are captured.
    """

    paging: Paging
    sequences: int
    element_bytes: int = 2
    ranks: int = 1
    kv_bytes: int | None = None
    captures_graphs: bool = False

    def ledger(self, model: ModelGraph, context: PlannedContext, device: Device) -> Ledger:
        """Return the ledger of a worker of ``model`` with nothing resident."""
        memory = estimate(model, context, device=device)
        return Ledger(
            resident_weight_bytes=0,
            small_weight_bytes=memory.small_weight_bytes,
            staging_bytes=0,
            kv_bytes=self.cache_bytes(model),
            state_bytes=0,
            compute_bytes=self._activation_bytes(model) + self._graph_bytes(device),
            projector_bytes=memory.projector_bytes,
            driver_bytes=0 if device.emulated else CONTEXT_BYTES,
        )

    def cache_bytes(self, model: ModelGraph) -> int:
        """Return the bytes of vLLM's cache: keys, values and recurrent states lie in the same blocks."""
        if self.kv_bytes is not None:
            return self.kv_bytes
        return self.paging.cache_bytes(model.cache, recurrent_layers(model.shards))

    def _activation_bytes(self, model: ModelGraph) -> int:
        """Return the peak of a full step: rows of the widest sub-layer, or the logits after the layers."""
        shape, ranks = model.shape, self.ranks
        selected = max(1, shape.experts_used)
        width = _ROWS * shape.embedding_width + _GATED * selected * -(-shape.ffn_width // ranks)
        layer_bytes = self.paging.step_tokens * width * self.element_bytes
        return max(layer_bytes, self.sequences * shape.vocabulary * _FLOAT * _LOGIT_COPIES)

    def _graph_bytes(self, device: Device) -> int:
        return GRAPH_BYTES if self.captures_graphs and not device.emulated else 0
