"""The comparison would notice: a spoilt weight changes the tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from integration.plans import SHAPES, plan_by

if TYPE_CHECKING:
    from integration.conftest import Runner
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import PlannedContext


def test_a_spoilt_host_copy_of_a_streamed_tensor_changes_the_tokens(
    runner: Runner, model: ModelGraph, context: PlannedContext
) -> None:
    plan = plan_by(model, runner.device, context, *SHAPES["all stream"])
    sound, _ = runner.under(plan, model)
    spoilt, _ = runner.under(plan, model, corrupt=plan.shards[0].tensors[0])
    assert spoilt.tokens != sound.tokens
