"""What can be said, and planned, before a model is started for the first time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xlm_ollama.enabled import BATCH_TOKENS
from xlm_ollama.plans import PlanWanted, find_or_make, make
from xlm_ollama.request import StartContext
from xlm_plugin.errors import DoesNotFitError
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_ollama.enabled import ShownModel
    from xlm_ollama.option import Option

# Ollama's own where the machine has less than 24 GiB of VRAM.
_DEFAULT_CONTEXT_TOKENS = 4096


def check_budget(base: ShownModel, option: Option, context_tokens: int | None) -> Iterator[str]:
    """Plan ``base`` as it will be started, and yield what the user should know.

    With ``context_tokens`` the plan is kept for the first start. Raises DoesNotFitError where the budget is
    too small for the context.
    """
    from xlm_plugin.plan.target import describe_machine
    from xlm_plugin.plugins import get_plugin_manager

    if base.file is None:
        yield "The model's file is out of sight: whether the budget is enough shows at the first start."
        return
    device = describe_machine(get_plugin_manager()).device
    if device is None:
        yield "There is no accelerator here: Ollama will run the model without a plan."
        return
    if option.budget_bytes is not None:
        # What is free now says nothing about the first start.
        device = replace(device, free_bytes=device.memory_bytes)
        if not device.asleep and option.budget_bytes > device.memory_bytes:
            yield f"{device.name} has {format_bytes(device.memory_bytes)}: the budget is that."
    tokens = context_tokens or base.context_tokens or _DEFAULT_CONTEXT_TOKENS
    context = StartContext(tokens, ubatch_tokens=BATCH_TOKENS)
    wanted = PlanWanted(base.file, option, context, device, base.adapters)
    try:
        plan = find_or_make(wanted)[0] if context_tokens else make(wanted)
    except DoesNotFitError as error:
        raise DoesNotFitError(
            f"With a context of {tokens} tokens: {error.message}",
            error.hint,
            missing_bytes=error.missing_bytes,
        ) from None
    resident = len(plan.resident)
    remark = f"{resident} of {len(plan.shards)} shards stay in VRAM with a context of {tokens} tokens"
    prediction = plan.tier_for(1).prediction
    yield f"{remark}, {1 / prediction.step_seconds:.1f} tokens/s predicted." if prediction else f"{remark}."
