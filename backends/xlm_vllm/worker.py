"""vLLM's workers with a step boundary: the tier before a step, checks after it, control in between."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vllm.v1.worker.cpu_worker import CPUWorker
from vllm.v1.worker.gpu_worker import Worker

from xlm_vllm.control import ShardControl
from xlm_vllm.graphs import capture_anew, padded_tokens
from xlm_vllm.memory import discard_pages

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput


class XlmWorker(ShardControl, Worker):
    """vLLM's GPU worker."""

    def execute_model(self, scheduler_output: SchedulerOutput) -> Any:
        """Run one step in the tier of the CUDA graph that runs it, or of its new tokens."""
        tokens = scheduler_output.total_num_scheduled_tokens
        with self.step(padded_tokens(self.compilation_config, tokens)):
            return super().execute_model(scheduler_output)

    def sleep(self, level: int = 1) -> None:
        """Park, then give back what vLLM holds itself: its cache, and the weights that no plan moves.

        Those have no other copy, so that level 2 keeps them as level 1 does.
        """
        self.xlm_park()
        super().sleep(min(level, 1))

    def wake_up(self, tags: list[str] | None = None) -> None:
        """Take back what ``tags`` name. The next step takes the rest."""
        super().wake_up(tags)
        if tags is None:
            self.xlm_wake()

    def addresses_changed(self) -> None:
        """Let CUDA graphs read weights from where they are now."""
        capture_anew(self.model_runner)


class XlmCpuWorker(ShardControl, CPUWorker):
    """vLLM's CPU worker, on which the device is emulated: its memory is this process's."""

    def execute_model(self, scheduler_output: SchedulerOutput) -> Any:
        """Run one step in the tier of its new tokens."""
        with self.step(scheduler_output.total_num_scheduled_tokens):
            return super().execute_model(scheduler_output)

    def sleep(self, level: int = 1) -> None:
        """Park, and from level 1 on give back the cache: vLLM computes it again for requests that go on."""
        self.xlm_park()
        if level >= 1:
            for cache in self.model_runner.kv_caches:
                discard_pages(cache)

    def wake_up(self, tags: list[str] | None = None) -> None:
        """Take the device memory of weights again; the cache takes its own as it fills."""
        if tags is None or "weights" in tags:
            self.xlm_wake()
