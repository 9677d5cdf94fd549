"""What a plan is to be quick at."""

from __future__ import annotations

from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.workload import typical_workload

LONG = PlannedContext(tokens=16384, ubatch_tokens=512)


def test_an_answer_takes_two_prefill_steps_and_256_of_decode() -> None:
    assert typical_workload(LONG).steps("e2e") == {512: 2.0, 1: 256.0}


def test_an_objective_leaves_out_what_it_does_not_wait_for() -> None:
    assert typical_workload(LONG).steps("ttft") == {512: 2.0}
    assert typical_workload(LONG).steps("tps") == {1: 256.0}


def test_a_batch_answers_all_sequences_at_once() -> None:
    context = LONG.model_copy(update={"sequences": 4})
    assert typical_workload(context).steps("batch") == {512: 8.0, 4: 256.0}


def test_a_short_context_has_room_for_less() -> None:
    short = typical_workload(PlannedContext(tokens=500, ubatch_tokens=512))
    assert (short.prompt_tokens, short.answer_tokens) == (400, 100)
    assert typical_workload(PlannedContext(tokens=1)).steps("e2e") == {1: 2.0}


def test_a_step_of_decode_sees_the_prompt_and_one_of_prefill_half_of_it() -> None:
    workload = typical_workload(LONG.model_copy(update={"sequences": 2}))
    assert (workload.load(2).cached_tokens, workload.load(2).sequences) == (1024 + 128, 2)
    assert (workload.load(512).cached_tokens, workload.load(512).sequences) == (512, 1)
