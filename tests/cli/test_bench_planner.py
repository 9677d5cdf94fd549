"""``xlm bench planner``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from click.testing import CliRunner

from xlm_hooks import plugin as built_in
from xlm_hooks.replay import report
from xlm_plugin.cli import cli
from xlm_plugin.testing import plugin_manager
from xlm_profiles import plugin as shipped

if TYPE_CHECKING:
    import pytest


def test_the_figures_of_the_planner_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "REGRET_CASES", ((3, 5),))
    with plugin_manager(built_in, shipped):
        shown = CliRunner().invoke(cli, ["bench", "planner", "--json"], standalone_mode=False)
        table = CliRunner().invoke(cli, ["bench", "planner"], standalone_mode=False)
    figures = json.loads(shown.stdout)
    assert figures["replay.median_error"] < 0.1
    assert figures["replay.kendall_tau"] >= 0.95
    assert figures["ladder.within_one"] >= 0.9
    assert figures["regret.max"] <= 0.01
    assert figures["replay.first_token_median_error"] < 0.1
    assert figures["preemption.max_error_seconds"] <= 0.2
    assert figures["plan_seconds"] > 0
    assert "ladder.within_one" in table.stdout
