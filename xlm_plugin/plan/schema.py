"""The JSON schema of the plan document.

``python -m xlm_plugin.plan.schema > docs/reference/plan.schema.json`` brings the published one up to date.
"""

from __future__ import annotations

import json

from xlm_plugin.plan.document import FORMAT, Plan


def plan_schema() -> str:
    """Return the JSON schema (draft 2020-12) of a plan, indented, ending in a newline."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Plan.model_json_schema()}
    schema["title"] = FORMAT
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    print(plan_schema(), end="")
