"""vLLM's workers with a step boundary: the tier before a step, checks after it, control in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.model_executor.offloader.base import get_offloader
from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.gpu_worker import Worker

from xlm_vllm.control import ShardControl

if TYPE_CHECKING:
    from collections.abc import Callable

    from vllm.v1.core.sched.output import SchedulerOutput

    from xlm_vllm.runtime import ShardRuntime


class XlmWorker(ShardControl, Worker):
    """vLLM's GPU worker."""

    def execute_model(self, scheduler_output: SchedulerOutput) -> Any:
        """Run one step in the tier of its new tokens."""
        return _in_tier(super().execute_model, scheduler_output)


class XlmCpuWorker(ShardControl, CPUWorker):
    """vLLM's CPU worker, on which the device is emulated: its memory is this process's."""

    def execute_model(self, scheduler_output: SchedulerOutput) -> Any:
        """Run one step in the tier of its new tokens."""
        return _in_tier(super().execute_model, scheduler_output)


def _in_tier(execute: Callable[[SchedulerOutput], Any], scheduler_output: SchedulerOutput) -> Any:
    tokens = scheduler_output.total_num_scheduled_tokens
    if not tokens:
        return execute(scheduler_output)
    runtime: ShardRuntime = get_offloader().runtime
    runtime.begin_step(tokens)
    output = execute(scheduler_output)
    runtime.finish_step()
    return output
