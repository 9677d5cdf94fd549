"""What a run measured, as people and as programs read it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from xlm_plugin.errors import XlmError
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.backend import Completion, DeviceStats
    from xlm_plugin.cli._planning import Planned
    from xlm_plugin.machine.document import Device
    from xlm_plugin.plan.outcomes import Outcome


def measured_lines(device: Device, completion: Completion, stats: DeviceStats) -> Iterator[str]:
    """Yield the memory that was promised, counted and taken, the traffic, and the speeds."""
    ledger_bytes = sum(stats.ledger_bytes.values())
    taken = format_bytes(stats.device_bytes) if stats.device_bytes else "does not say what it holds"
    yield (
        f"budget {format_bytes(stats.budget_bytes)}, ledger {format_bytes(ledger_bytes)}, "
        f"{shown_name(device)} {taken}"
    )
    yield f"over the link {format_bytes(stats.link_bytes)}, waited for it {stats.wait_seconds:.2f} s"
    yield f"under the plan: {speeds(device, completion)}"


def remembered_outcomes(planned: Planned, completion: Completion, threads: int) -> tuple[Outcome, ...]:
    """Return what was measured beside what was predicted for it, and keep it for later plans.

    That it cannot be kept is no reason to lose the answer: it is said on stderr.
    """
    from xlm_plugin.plan.outcomes import outcomes_of, remember
    from xlm_plugin.plan.simulated import SimulatedPlan

    simulated = SimulatedPlan(planned.plan, planned.model, planned.profile)
    outcomes = outcomes_of(simulated, completion, threads)
    try:
        remember(outcomes)
    except (OSError, XlmError) as error:
        click.echo(f"Warning: What was measured is not kept: {error}", err=True)
    return outcomes


def speeds(device: Device, completion: Completion) -> str:
    """Return the measured tokens/s of ``completion``, saying where they are emulated."""
    return (
        f"prefill {completion.prefill_tokens_per_s:.1f} tokens/s ({completion.prompt_tokens} tokens), "
        f"decode {completion.decode_tokens_per_s:.1f} tokens/s"
        f"{', emulated' if device.emulated else ''}"
    )


def shown_name(device: Device) -> str:
    """Return the device's name, and that it is emulated where it is."""
    return f"{device.name} (emulated)" if device.emulated else device.name


def document(
    device: Device, completion: Completion, stats: DeviceStats, stock: Completion | None
) -> dict[str, Any]:
    """Return everything that was measured; ``stock`` is the same prompt without a plan."""
    measured = {
        **dataclasses.asdict(completion),
        "device": device.name,
        "emulated": device.emulated,
        "stats": dataclasses.asdict(stats),
    }
    if stock is None:
        return measured
    return {
        **measured,
        "identical_to_stock": stock.tokens == completion.tokens,
        "stock": dataclasses.asdict(stock),
    }
