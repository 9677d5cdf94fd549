"""Why a plan is as it is, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_plugin.plan.explain import milliseconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from xlm_plugin.cli._plan_check import Trial
    from xlm_plugin.plan.explain import Explanation


def print_explanation(console: Console, explanation: Explanation) -> None:
    """Print where the time of a step goes, why each group of shards lies where it lies, and what is next."""
    for phase in explanation.phases:
        console.print(f"\n{phase.name.capitalize()}", style="bold")
        console.print(f"  {phase.sentence}")
    console.print("\nPlacement", style="bold")
    for group in explanation.groups:
        console.print(f"  {group.title}")
        for reason in group.reasons:
            console.print(f"    {reason}", style="dim")
    console.print("\nMore memory", style="bold")
    console.print(f"  {explanation.next_sentence}")


def print_trials(console: Console, trials: Sequence[Trial]) -> None:
    """Print what was predicted and measured for each plan that was tried, the winner first."""
    console.print("\nTried on the engine, for a typical answer", style="bold")
    for at, trial in enumerate(trials):
        strategies = ", ".join(dict.fromkeys(tier.strategy for tier in trial.plan.tiers))
        console.print(
            f"  {strategies}: {milliseconds(trial.measured_seconds)} measured, "
            f"{milliseconds(trial.predicted_seconds)} predicted{', kept' if at == 0 else ''}"
        )
