"""The plan that a worker carries out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from xlm_plugin.plan.document import Plan

if TYPE_CHECKING:
    from xlm_vllm.config import XlmConfig


def plan_for(vllm_config: Any, config: XlmConfig) -> Plan:  # noqa: ARG001
    """Return the plan that ``config`` names."""
    return Plan.from_json(json.dumps(config.plan))
