"""Why a plan is as it is, as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

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
