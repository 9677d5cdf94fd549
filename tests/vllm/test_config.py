from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.vllm.plans import a_plan
from xlm_plugin.errors import PlanError, UsageError
from xlm_plugin.units import GIB
from xlm_vllm.config import XlmConfig, plan_digest, read_config

sizes = st.none() | st.integers(1, 2**62)


@given(
    st.builds(
        XlmConfig,
        vram_bytes=sizes,
        objective=st.sampled_from(["ttft", "tps", "e2e", "batch"]),
        pinned_limit_bytes=sizes,
        link_bytes_per_s=st.none() | st.floats(1, 1e12),
    )
    | st.builds(XlmConfig, plan=st.just(Path("/plans/some.json")), digest=st.just("sha256:1"))
)
def test_a_configuration_is_read_as_it_was_written(config: XlmConfig) -> None:
    assert read_config(json.loads(json.dumps(config.additional()))) == config


def test_a_budget_is_a_size_or_a_number_of_bytes() -> None:
    assert read_config({"xlm": {"vram": "6GiB"}}) == read_config({"xlm": {"vram": 6 * GIB}})


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"vrma": "6GiB"}, "xlm.vrma is not known. Did you mean xlm.vram?"),
        ({"zzz": 1}, "Known are: vram, plan,"),
        ({"vram": "6"}, "has no unit"),
        ({"vram": -1}, "xlm.vram cannot be -1"),
        ({"vram": True}, "xlm.vram cannot be True"),
        ({"plan": 3}, "Give the file of a plan."),
        ({"objective": "speed"}, "Give one of ttft, tps, e2e, batch."),
        ({"link_bytes_per_s": 0}, "xlm.link_bytes_per_s cannot be 0"),
        ({"vram": "6GiB", "plan": "plan.json"}, "Leave out one."),
    ],
)
def test_what_makes_no_sense_is_named(asked: dict[str, object], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_config({"xlm": asked})

    assert sentence in str(raised.value)


@pytest.mark.parametrize("additional", [{}, {"xlm": "6GiB"}, None, []])
def test_loading_through_us_without_a_word_about_it_is_an_error(additional: object) -> None:
    with pytest.raises(UsageError, match="--additional-config"):
        read_config(additional)


def test_a_plan_may_be_a_file_or_a_document(tmp_path: Path) -> None:
    plan = a_plan()
    plan.write(tmp_path / "plan.json")

    from_file = XlmConfig(plan=tmp_path / "plan.json", digest=plan_digest(plan))
    inside = XlmConfig(plan=plan.model_dump(mode="json"))

    assert from_file.read_plan() == inside.read_plan() == plan


def test_a_plan_that_changed_since_the_flags_were_made_is_refused(tmp_path: Path) -> None:
    plan = a_plan()
    plan.write(tmp_path / "plan.json")
    changed = plan.model_copy(update={"notes": ("another",)})

    with pytest.raises(PlanError, match="xlm vllm args"):
        XlmConfig(plan=tmp_path / "plan.json", digest=plan_digest(changed)).read_plan()
