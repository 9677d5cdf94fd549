"""The published JSON schema of the plan document."""

from __future__ import annotations

import json
from pathlib import Path

from xlm_plugin.plan.document import FORMAT, Plan
from xlm_plugin.plan.schema import plan_schema

PUBLISHED = Path(__file__).parents[2] / "docs" / "reference" / "plan.schema.json"


def test_the_published_schema_is_up_to_date() -> None:
    assert PUBLISHED.read_text(encoding="utf-8") == plan_schema(), (
        "run: python -m xlm_plugin.plan.schema > docs/reference/plan.schema.json"
    )


def test_the_schema_names_its_version_and_every_field() -> None:
    schema = json.loads(plan_schema())
    assert schema["title"] == FORMAT
    assert set(schema["properties"]) == set(Plan.model_fields)
