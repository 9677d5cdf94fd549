"""Which shards become resident, in which order and beside which staging."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xlm_hooks.planner.residents import Stage, by_worth, choose_residents
from xlm_plugin.model.graph import Shard, ShardKind, Tensor

KIB4 = 4096


def shard(name: str, pages: int, kind: ShardKind = "ffn", layer: int | None = None) -> Shard:
    tensor = Tensor(f"{name}.weight", "F16", (pages * KIB4 // 2,), pages * KIB4, movable=True)
    return Shard(name, kind, layer, (tensor,), flops_per_token=0, active_bytes=pages * KIB4)


A, B, C = shard("a", 4), shard("b", 2), shard("c", 1)
EXPERTS = shard("x", 8, "experts"), shard("y", 8, "experts"), shard("z", 8, "experts")


def test_attention_and_ssm_come_first_then_output_shared_experts_and_the_rest() -> None:
    shards = [
        shard("ffn", 1),
        shard("experts", 1, "experts"),
        shard("shared", 1, "shared_experts"),
        shard("output", 1, "output"),
        shard("ssm", 1, "ssm"),
        shard("attn", 1, "attn"),
    ]
    assert [s.name for s in by_worth(shards)] == ["attn", "ssm", "output", "shared", "experts", "ffn"]


def test_within_a_kind_larger_shards_come_first_and_then_earlier_layers() -> None:
    shards = [shard("late", 2, layer=9), shard("small", 1, layer=0), shard("early", 2, layer=1)]
    assert [s.name for s in by_worth(shards)] == ["early", "late", "small"]


def test_all_of_a_stage_that_fits_needs_no_staging() -> None:
    chosen = choose_residents([Stage((A, B), slot_bytes=4 * KIB4)], 6 * KIB4)
    assert (chosen.names, chosen.bytes, chosen.slot_bytes) == ({"a", "b"}, 6 * KIB4, 0)


def test_two_slots_come_before_residents_that_are_not_all() -> None:
    chosen = choose_residents([Stage((A, B, C), slot_bytes=KIB4)], 6 * KIB4)
    assert (chosen.names, chosen.bytes, chosen.slot_bytes) == ({"a"}, 4 * KIB4, KIB4)


def test_a_shard_that_does_not_fit_is_passed_over_for_one_that_does() -> None:
    assert choose_residents([Stage((A, B, C), slot_bytes=0)], 3 * KIB4).names == {"b", "c"}


def test_a_later_stage_waits_for_the_earlier_one_and_its_own_staging() -> None:
    stages = [Stage((A,), slot_bytes=KIB4), Stage(EXPERTS, slot_bytes=8 * KIB4)]
    waiting = choose_residents(stages, (4 + 15) * KIB4)
    assert (waiting.names, waiting.slot_bytes, waiting.missing_bytes) == ({"a"}, 0, KIB4)
    assert choose_residents(stages, (4 + 16) * KIB4).slot_bytes == 8 * KIB4


def test_without_room_for_staging_nothing_of_the_stage_is_resident() -> None:
    chosen = choose_residents([Stage((A, B), slot_bytes=4 * KIB4)], 5 * KIB4)
    assert (chosen.names, chosen.missing_bytes) == (frozenset(), 3 * KIB4)


def test_an_indivisible_stage_is_resident_whole_or_not_at_all() -> None:
    stage = Stage(EXPERTS, slot_bytes=0, divisible=False)
    assert choose_residents([stage], 23 * KIB4).names == frozenset()
    assert choose_residents([stage], 24 * KIB4).names == {"x", "y", "z"}


STAGES = st.lists(
    st.builds(
        lambda pages, slot, divisible: (pages, slot, divisible),
        st.lists(st.integers(1, 9), max_size=6),
        st.integers(0, 9),
        st.booleans(),
    ),
    max_size=3,
)


@given(described=STAGES, capacities=st.tuples(st.integers(0, 90), st.integers(0, 90)))
def test_c29_more_capacity_never_keeps_fewer_bytes(
    described: list[tuple[list[int], int, bool]], capacities: tuple[int, int]
) -> None:
    stages = [
        Stage(tuple(shard(f"{at}.{nth}", pages) for nth, pages in enumerate(sizes)), slot * KIB4, divisible)
        for at, (sizes, slot, divisible) in enumerate(described)
    ]
    less, more = (choose_residents(stages, pages * KIB4) for pages in sorted(capacities))
    assert less.bytes <= more.bytes
    assert more.bytes + 2 * more.slot_bytes <= max(capacities) * KIB4
