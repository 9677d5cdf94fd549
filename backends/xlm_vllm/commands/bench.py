"""``xlm vllm bench``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click


@click.command("bench")
@click.argument("model", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--tokens", type=click.IntRange(1, 400), default=48, help="Tokens decoded. [default: 48]")
@click.option("--pairs", type=click.IntRange(1, 100), default=3, help="Engines compared. [default: 3]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def bench(model: Path, tokens: int, pairs: int, as_json: bool) -> None:
    """Measure what a plan costs and hides for MODEL, a Hugging Face folder that this machine holds whole."""
    from xlm_plugin.cli._output import print_json
    from xlm_vllm.bench import bench_vllm

    found = bench_vllm(model, decoded_tokens=tokens, pairs=pairs)
    if as_json:
        print_json({**asdict(found), "overlaps": [overlap.document() for overlap in found.overlaps]})
        return
    click.echo(
        f"All pinned: {found.resident:.3f} of stock vLLM's speed, "
        f"{found.stock_step_seconds * 1e3:.2f} ms a step."
    )
    for overlap in found.overlaps:
        click.echo(
            f"All streamed over an emulated link of {overlap.link_bytes_per_s / 1e9:.2f} GB/s: "
            f"{overlap.step_seconds * 1e3:.2f} ms a step, {overlap.ratio:.2f} of max(link "
            f"{overlap.link_seconds * 1e3:.2f} ms, compute {overlap.compute_seconds * 1e3:.2f} ms)."
        )
