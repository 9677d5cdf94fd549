"""``xlm bench profile`` and ``xlm bench steps``: how long profiles take, and how well steps are predicted."""

from __future__ import annotations

import click

LINKS_GB_PER_S = (1.0, 2.0, 4.0, 16.0)


@click.command("profile")
@click.option("--full", is_flag=True, help="Take the full profile too, which takes 5 minutes.")
@click.option("--device", metavar="NAME", help="A device of this machine, or emulated.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def profile_command(full: bool, device: str | None, as_json: bool) -> None:
    """Take profiles, keep none of them, and tell their time and size."""
    from time import perf_counter

    from xlm_hooks.profiler.command import FULL_SECONDS, QUICK_SECONDS, Target, measure
    from xlm_hooks.profiler.requests import Requests
    from xlm_plugin.cli._output import out, print_json

    figures: dict[str, float] = {}
    for name in ("quick", "full") if full else ("quick",):
        target = Target.of(device, empty=True)
        wanted = Requests(target.machine, full=name == "full").all()
        start = perf_counter()
        limit_seconds = FULL_SECONDS if name == "full" else QUICK_SECONDS
        session = measure(target, wanted, limit_seconds, save=lambda _: None)
        figures[f"profile.{name}_seconds"] = round(perf_counter() - start, 2)
        figures[f"profile.{name}_rows"] = len(session.document.measurements)
        figures[f"profile.{name}_left"] = session.left
        figures["profile.bytes"] = len(session.document.to_json().encode())
    if as_json:
        print_json(figures)
        return
    for name, value in figures.items():
        out().print(f"{name:24} {value:g}")


@click.command("steps")
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--plans", type=click.IntRange(min=1), default=40, metavar="N", help="Plans. [default: 40]")
@click.option("--seed", type=int, default=1, metavar="N", help="Of the random placements. [default: 1]")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def steps_command(models: tuple[str, ...], plans: int, seed: int, as_json: bool) -> None:
    """Compare predicted with measured decode steps: random plans on emulated links of four speeds."""
    from statistics import median

    from xlm_hooks.profiler.steps import compare_steps
    from xlm_plugin.cli._launch import orderly_end
    from xlm_plugin.cli._output import err, out, print_json

    found = []
    with orderly_end():
        for each in compare_steps(models or ("demo",), LINKS_GB_PER_S, plans, seed):
            found.append(each)
            err().print(
                f"{each.model} at {each.link_bytes_per_s / 1e9:g} GB/s: predicted "
                f"{1e3 * each.predicted_seconds:.2f} ms, measured {1e3 * each.measured_seconds:.2f} ms"
            )
    error = median(each.error for each in found)
    if as_json:
        print_json({"steps.median_error": error, "steps.plans": len(found), "steps": found})
    else:
        out().print(f"median error {error:.1%} over {len(found)} plans")
