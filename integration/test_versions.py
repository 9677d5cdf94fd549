"""The device serves the ggml that it was built for, and no other."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from integration.plans import SHAPES, plan_by
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from pathlib import Path

    from integration.conftest import Runner
    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import PlannedContext


def test_another_ggml_is_refused_with_what_was_found_and_what_is_supported(
    runner: Runner, demo: ModelGraph, context: PlannedContext, tmp_path: Path
) -> None:
    library = tmp_path / "libother.so"
    source = 'extern "C" const char * ggml_version() { return "9.9.9"; }'
    command = ("g++", "-shared", "-fPIC", "-x", "c++", "-o", str(library), "-")
    subprocess.run(command, input=source, text=True, check=True)
    plan = plan_by(demo, runner.device, context, *SHAPES["all pin"])
    spec = runner.backend.launch_spec(plan, demo, runner.options)
    with pytest.raises(EngineError) as refused:
        runner.backend.start(replace(spec, environment={**spec.environment, "LD_PRELOAD": str(library)}))
    assert "The device refused: this engine's ggml is 9.9.9, and this device was built for" in str(
        refused.value
    )
    assert "supported are 0.20.2 (llama.cpp b10488), 0.26.0 (llama.cpp b11434)." in str(refused.value)
