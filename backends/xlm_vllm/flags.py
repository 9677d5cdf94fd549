"""The flags and the environment that switch vLLM to a plan."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xlm_plugin.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xlm_vllm.config import XlmConfig

# The name of our entry points, which VLLM_PLUGINS lets through; endpoints come only where it names them.
PLUGIN = "xlm"
_PLUGINS_VARIABLE = "VLLM_PLUGINS"

_WORKER = "xlm_vllm.worker.XlmWorker"
_CPU_WORKER = "xlm_vllm.worker.XlmCpuWorker"
# vLLM takes no utilisation of nothing.
_LEAST_UTILISATION = 0.01

# What vLLM calls what we set, and our option for it.
_OURS = {
    "--additional-config": "",
    "--cpu-offload-gb": "",
    "--gpu-memory-utilization": "--vram",
    "--kv-cache-memory-bytes": "--kv",
    "--load-format": "",
    "--max-model-len": "--ctx",
    "--max-num-batched-tokens": "--ubatch",
    "--max-num-seqs": "--parallel",
    "--offload-backend": "",
    "--offload-group-size": "",
    "--tensor-parallel-size": "--tensor-parallel",
    "-tp": "--tensor-parallel",
    "--worker-cls": "",
}


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What is asked of one ``vllm serve``. ``budget_bytes`` and ``memory_bytes`` are of each device."""

    model: str
    config: XlmConfig
    budget_bytes: int
    memory_bytes: int
    context_tokens: int
    step_tokens: int
    sequences: int
    kv_bytes: int | None = None
    ranks: int = 1
    on_cpu: bool = False

    def command(self, extra: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the command line. Raises UsageError where ``extra`` sets what is ours to set."""
        check_extra(extra)
        # Rounded down: vLLM refuses to start where less is free.
        utilisation = max(_LEAST_UTILISATION, int(self.budget_bytes / self.memory_bytes * 1000) / 1000)
        flags = {
            "--load-format": PLUGIN,
            "--worker-cls": worker_class(on_cpu=self.on_cpu),
            "--additional-config": json.dumps(self.config.additional(), separators=(",", ":")),
            "--max-model-len": str(self.context_tokens),
            "--max-num-batched-tokens": str(self.step_tokens),
            "--max-num-seqs": str(self.sequences),
            "--gpu-memory-utilization": f"{min(1.0, utilisation):g}",
        }
        if self.kv_bytes is not None:
            flags["--kv-cache-memory-bytes"] = str(self.kv_bytes)
        if self.ranks > 1:
            flags["--tensor-parallel-size"] = str(self.ranks)
        return ("vllm", "serve", self.model, *(word for flag in flags.items() for word in flag), *extra)


def worker_class(*, on_cpu: bool) -> str:
    """Return the name of our worker class."""
    return _CPU_WORKER if on_cpu else _WORKER


def check_extra(extra: Sequence[str]) -> None:
    """Raise UsageError where ``extra`` has a flag of vLLM that is ours to set."""
    for word in extra:
        flag = word.partition("=")[0].replace("_", "-")
        name = flag.split(".")[0]
        if name in _OURS:
            ours = _OURS[name]
            hint = f"Give {ours} before the --." if ours else "Leave it out."
            raise UsageError(f"{name} is for xlm to set.", hint)


def plugin_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that let vLLM load us, with those that it loads already."""
    named = [name for name in environ.get(_PLUGINS_VARIABLE, "").split(",") if name]
    return {_PLUGINS_VARIABLE: ",".join(dict.fromkeys([*named, PLUGIN]))}
