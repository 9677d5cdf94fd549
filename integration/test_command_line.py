"""``xlm run`` as a newcomer types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SMALL = ("--ctx", "512", "--ubatch", "64", "--device", "emulated:16")


def xlm(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("xlm"), *arguments], capture_output=True, text=True, check=False
    )


def test_the_demo_answers_within_a_budget_below_its_weights_as_the_stock_engine_does() -> None:
    result = xlm("run", "demo", "-p", "The capital of France is", "--vram", "62MiB", *SMALL, "--check")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert "tokens identical to stock: yes" in result.stderr
    assert "emulated" in result.stderr


def test_json_holds_the_text_and_all_measurements() -> None:
    result = xlm(
        "run", "demo", "-p", "Hello", "--chat", "--new-tokens", "4", "--vram", "62MiB", *SMALL, "--json"
    )
    measured = json.loads(result.stdout)
    assert len(measured["tokens"]) <= 4
    assert measured["emulated"] is True
    assert sum(measured["stats"]["ledger_bytes"].values()) <= measured["stats"]["budget_bytes"]


def test_a_budget_that_cannot_hold_the_context_is_refused_with_exit_code_3() -> None:
    result = xlm("run", "demo", "-p", "Hello", "--vram", "1MiB", *SMALL)
    assert result.returncode == 3
    assert "more than the budget of 1.00 MiB" in result.stderr
    assert "Traceback" not in result.stderr
