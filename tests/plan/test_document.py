"""The plan document: what is read, what is refused and in which words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from xlm_plugin.errors import DoesNotFitError, PlanError
from xlm_plugin.plan.document import Plan, PlannedContext
from xlm_plugin.testing import tiny_model, tiny_plan

if TYPE_CHECKING:
    from pathlib import Path

MODEL = tiny_model()


def document(**changes: Any) -> dict[str, Any]:
    """Return a valid plan that streams everything, with ``changes``."""
    valid: dict[str, Any] = json.loads(tiny_plan(MODEL, placement="stream").to_json())
    return {**valid, **changes}


def read(content: object) -> Plan:
    return Plan.from_json(json.dumps(content))


def test_a_plan_reads_back_as_it_was_written(tmp_path: Path) -> None:
    plan = tiny_plan(MODEL, placement="stream")
    plan.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == plan
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_failed_write_leaves_the_old_plan_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "plan.json"
    target.mkdir()
    with pytest.raises(PlanError, match=r"cannot be written to .*plan.json: "):
        tiny_plan(MODEL).write(target)
    assert [path.name for path in tmp_path.iterdir()] == ["plan.json"]


def test_a_write_into_a_missing_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="No such file or directory"):
        tiny_plan(MODEL).write(tmp_path / "missing" / "plan.json")


def test_the_smallest_covering_tier_is_used_and_the_last_one_for_more() -> None:
    plan = tiny_plan(MODEL, tiers=(1, 16, 512))
    assert [plan.tier_for(tokens).new_tokens for tokens in (1, 2, 16, 17, 9999)] == [1, 16, 16, 512, 512]


def test_a_shard_that_one_tier_pins_is_resident() -> None:
    content = document()
    name = content["shards"][0]["name"]
    content["tiers"][0]["placements"][name] = "pin"
    content["ledger"]["resident_weight_bytes"] = content["shards"][0]["bytes"]
    content["budget_bytes"] += content["shards"][0]["bytes"]
    plan = read(content)
    assert plan.resident == {name}
    assert plan.streamed == {shard.name for shard in plan.shards}


def test_only_a_plan_of_stock_tiers_is_stock() -> None:
    content = document()
    assert not read(content).is_stock
    for tier in content["tiers"]:
        tier["strategy"] = "stock"
    assert read(content).is_stock


def test_a_plan_of_another_version_names_both() -> None:
    with pytest.raises(PlanError, match=r"version 'xlm\.plan/2'; this xlm reads only 'xlm\.plan/1'"):
        read(document(format="xlm.plan/2", something_new=1))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not a JSON object"),
        ("{}", "has no format"),
    ],
)
def test_what_is_not_a_plan_is_told_so(text: str, fault: str) -> None:
    with pytest.raises(PlanError, match=fault):
        Plan.from_json(text)


def test_an_unknown_placement_is_named_with_its_shard() -> None:
    content = document()
    content["tiers"][0]["placements"]["blk.1.ffn"] = "gpu"
    with pytest.raises(
        PlanError, match=r"tiers\.0\.placements\.blk\.1\.ffn is 'gpu', which is not 'pin', 'stream' or 'cpu'"
    ):
        read(content)


@pytest.mark.parametrize("budget_bytes", [0, -1])
def test_a_budget_that_is_not_above_zero_is_refused(budget_bytes: int) -> None:
    with pytest.raises(PlanError, match="budget_bytes: input should be greater than 0"):
        read(document(budget_bytes=budget_bytes))


def test_an_unknown_field_is_refused() -> None:
    with pytest.raises(PlanError, match="colour"):
        read(document(colour="red"))


def test_over_budget_says_how_many_bytes_are_missing() -> None:
    content = document()
    content["budget_bytes"] -= 7
    with pytest.raises(DoesNotFitError, match="7 bytes more than its budget") as caught:
        read(content)
    assert caught.value.missing_bytes == 7
    assert caught.value.exit_code == 3


def twice_named(content: dict[str, Any]) -> None:
    content["shards"][1]["name"] = content["shards"][0]["name"]


def twice_held(content: dict[str, Any]) -> None:
    content["shards"][1]["tensors"] = content["shards"][0]["tensors"]


def falling_tiers(content: dict[str, Any]) -> None:
    content["tiers"].reverse()


def unknown_shard(content: dict[str, Any]) -> None:
    content["tiers"][0]["placements"]["blk.9.attn"] = "cpu"


def unplaced_shard(content: dict[str, Any]) -> None:
    del content["tiers"][1]["placements"]["blk.0.attn"]


def one_slot(content: dict[str, Any]) -> None:
    content["staging"]["slots"] = 1


def small_slots(content: dict[str, Any]) -> None:
    content["staging"]["slot_bytes"] = 256


def other_staging_bytes(content: dict[str, Any]) -> None:
    content["ledger"]["staging_bytes"] -= 1


def other_resident_bytes(content: dict[str, Any]) -> None:
    content["ledger"]["resident_weight_bytes"] += 1


def falling_host_kv_layers(content: dict[str, Any]) -> None:
    content["host_kv_layers"] = [1, 0]


def twice_on_host(content: dict[str, Any]) -> None:
    content["host_layers"] = 1
    content["host_kv_layers"] = [0, 1]


def pinned_host_layer(content: dict[str, Any]) -> None:
    content["host_layers"] = 1


@pytest.mark.parametrize(
    ("contradict", "fault"),
    [
        (twice_named, "two shards are named 'blk.0.attn'"),
        (twice_held, "two shards hold the tensor 'blk.0.attn_q.weight'"),
        (falling_tiers, "new_tokens do not rise"),
        (unknown_shard, "tier 1 places an unknown shard 'blk.9.attn'"),
        (unplaced_shard, "tier 512 does not place shard 'blk.0.attn'"),
        (one_slot, "streams, which takes 2 staging slots or more"),
        (falling_host_kv_layers, "the host_kv_layers do not rise"),
        (twice_on_host, "layer 0 lies on the host already"),
        (pinned_host_layer, "tier 1 places shard 'blk.0.attn' of a host layer as"),
        (small_slots, "streams but is larger than a staging slot"),
        (other_staging_bytes, "staging_bytes are not those"),
        (other_resident_bytes, "resident_weight_bytes are not those"),
    ],
)
def test_a_contradiction_is_refused_in_words(contradict: Any, fault: str) -> None:
    content = document()
    contradict(content)
    with pytest.raises(PlanError, match=fault):
        read(content)


def test_a_plan_for_another_model_names_both() -> None:
    other = tiny_model(layers=3)
    plan = tiny_plan(MODEL)
    plan.check_model(MODEL)
    with pytest.raises(
        PlanError, match=r"made for 'tiny' \(sha256:\w{12}\), this is 'tiny' \(sha256:\w{12}\)"
    ):
        plan.check_model(other)


def test_a_plan_places_all_movable_tensors_of_its_model_and_no_others() -> None:
    plan = tiny_plan(MODEL)
    plan.check_tensors(MODEL)
    first, *others = plan.shards
    fewer = first.model_copy(update={"tensors": first.tensors[1:]})
    with pytest.raises(PlanError, match=f"it leaves out the tensor '{first.tensors[0]}'"):
        plan.model_copy(update={"shards": (fewer, *others)}).check_tensors(MODEL)
    more = first.model_copy(update={"tensors": (*first.tensors, "blk.7.ffn_up.weight")})
    with pytest.raises(PlanError, match=r"it places 'blk.7.ffn_up.weight', which is no tensor of the model"):
        plan.model_copy(update={"shards": (more, *others)}).check_tensors(MODEL)


def test_a_plan_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="No such file or directory"):
        Plan.read(tmp_path / "missing.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="it is not text"):
        Plan.read(tmp_path / "binary.json")


def test_c23_a_quantised_v_cache_needs_flash_attention() -> None:
    with pytest.raises(PlanError, match="type q4_0 needs flash attention"):
        PlannedContext(tokens=512, kv_type_v="q4_0", flash_attention=False)
    assert PlannedContext(tokens=512, kv_type_k="q8_0", flash_attention=False).kv_type_v == "f16"


def test_a_plan_nested_too_deeply_is_one_sentence() -> None:
    with pytest.raises(PlanError, match="it is nested too deeply"):
        Plan.from_json("[" * 200_000)
