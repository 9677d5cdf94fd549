"""A plan explained on one page of HTML that needs nothing else."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING

from xlm_plugin.cli._charts import curve_chart, layer_map, step_timeline
from xlm_plugin.plan.explain import milliseconds, rate
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from xlm_plugin.plan.curve import BudgetCurve
    from xlm_plugin.plan.document import Plan, Tier
    from xlm_plugin.plan.explain import Explanation, Group
    from xlm_plugin.plan.simulated import SimulatedPlan

_PARTS = {
    "resident_weight_bytes": "resident weights",
    "small_weight_bytes": "small weights",
    "staging_bytes": "staging",
    "expert_cache_bytes": "expert cache",
    "kv_bytes": "KV cache",
    "state_bytes": "recurrent state",
    "compute_bytes": "compute buffers",
    "projector_bytes": "projector",
    "driver_bytes": "driver",
}


def plan_page(simulated: SimulatedPlan, explanation: Explanation, curve: BudgetCurve) -> str:
    """Return the page: memory, layers, a step of each phase, reasons, and speed against the budget."""
    plan = simulated.plan
    template = Template(files("xlm_plugin.cli").joinpath("_plan_page.html").read_text(encoding="utf-8"))
    bar, legend = _memory(plan)
    return template.substitute(
        title=escape(f"{plan.model.name} in {format_bytes(plan.budget_bytes)}"),
        subtitle=escape(_subtitle(plan)),
        figures=_join(_figures(simulated, explanation)),
        memory_bar=bar,
        memory_legend=legend,
        layers=_join(_layers(simulated)),
        steps=_join(_steps(simulated, explanation)),
        reasons=_join(map(_reason, explanation.groups)),
        more=escape(explanation.next_sentence),
        curves=curve_chart(curve, lambda point: point.tokens_per_s, "decode, tokens/s", plan.budget_bytes)
        + curve_chart(curve, lambda point: point.first_token_seconds, "first token, s", plan.budget_bytes),
        curve_table=_curve_table(curve),
        notes=_join(f"<p>{escape(note)}</p>" for note in plan.notes),
    )


def _join(parts: Iterable[str]) -> str:
    return "\n".join(parts)


def _subtitle(plan: Plan) -> str:
    emulated = " (emulated)" if plan.emulated else ""
    return (
        f"{plan.model.architecture}, {format_bytes(plan.model.weight_bytes)} of weights, on "
        f"{plan.device}{emulated}, {plan.context.tokens} tokens of context"
    )


def _figures(simulated: SimulatedPlan, explanation: Explanation) -> Iterator[str]:
    plan, workload = simulated.plan, simulated.workload
    decode, prefill = explanation.phases[0].step, explanation.phases[-1].step
    busiest = {"link": "the link", "device": "the accelerator", "host": "the CPU"}[decode.bottleneck]
    wait = milliseconds(workload.prefill_steps * prefill.step_seconds)
    for value, what in (
        (rate(1 / decode.step_seconds), "tokens/s in decode, predicted"),
        (
            wait,
            f"to the first token, {workload.prompt_tokens} tokens",
        ),
        (format_bytes(plan.ledger.total_bytes), f"of {format_bytes(plan.budget_bytes)} taken"),
        (busiest, f"is busiest in decode, {decode.utilisation[decode.bottleneck]:.0%}"),
    ):
        yield f"<div><b>{escape(value)}</b><span>{escape(what)}</span></div>"


def _memory(plan: Plan) -> tuple[str, str]:
    """Return the bar and its legend."""
    parts = [(name, title, getattr(plan.ledger, name)) for name, title in _PARTS.items()]
    parts.append(("unused", "not used", plan.budget_bytes - plan.ledger.total_bytes))
    shown = [part for part in parts if part[2]]
    bar = "".join(
        f'<i class="{name}" style="flex: {size_bytes} 0 0" title="{title}, {format_bytes(size_bytes)}"></i>'
        for name, title, size_bytes in shown
    )
    legend = "".join(
        f'<li><i class="{name}"></i>{title} <b>{format_bytes(size_bytes)}</b></li>'
        for name, title, size_bytes in shown
    )
    return bar, legend


def _layers(simulated: SimulatedPlan) -> Iterator[str]:
    for tier in simulated.plan.tiers:
        yield f'<h3>{escape(_tier_title(tier))}</h3><div class="wide">{layer_map(simulated, tier)}</div>'


def _tier_title(tier: Tier) -> str:
    tokens = "Decode" if tier.new_tokens == 1 else f"Steps of up to {tier.new_tokens} tokens"
    return f"{tokens}, {tier.strategy}"


def _steps(simulated: SimulatedPlan, explanation: Explanation) -> Iterator[str]:
    for phase in explanation.phases:
        drawn = step_timeline(simulated, phase.new_tokens)
        yield (
            f'<h3>{phase.name.capitalize()}</h3><div class="wide">{drawn}</div>'
            f"<p>{escape(phase.sentence)}</p>"
        )


def _reason(group: Group) -> str:
    reasons = "".join(f"<p>{escape(reason)}</p>" for reason in group.reasons)
    return f"<li><b>{escape(group.title)}</b>{reasons}</li>"


def _curve_table(curve: BudgetCurve) -> str:
    rows = "".join(
        f"<tr><td>{format_bytes(point.budget_bytes)}</td><td>{format_bytes(point.resident_weight_bytes)}</td>"
        f"<td>{point.first_token_seconds:.3g}</td><td>{point.tokens_per_s:.3g}</td></tr>"
        for point in curve.points
    )
    heads = "".join(
        f"<th>{head}</th>" for head in ("budget", "resident weights", "first token, s", "decode, tokens/s")
    )
    return f"<table><tr>{heads}</tr>{rows}</table>"
