from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.profile.rows import machine_rows, row
from xlm_hooks.profiler.requests import Requests
from xlm_plugin.errors import ProfileError
from xlm_plugin.machine.identity import read_identity
from xlm_plugin.machine.profile_document import ProfileDocument
from xlm_plugin.testing import fake_machine

if TYPE_CHECKING:
    from pathlib import Path

IDENTITY = read_identity(fake_machine())
DOCUMENT = ProfileDocument(IDENTITY, machine_rows())


def test_a_document_is_read_as_it_was_written() -> None:
    found = ProfileDocument.from_json(DOCUMENT.to_json())
    assert found.identity == IDENTITY
    assert {each.request for each in found.measurements} == {each.request for each in DOCUMENT.measurements}
    assert {each.source for each in found.measurements} == {"a test"}


def test_times_keep_four_digits() -> None:
    document = ProfileDocument(IDENTITY, (row("ADD", "F32", (64,), 1, 1.23456e-6),))
    assert ProfileDocument.from_json(document.to_json()).measurements[0].seconds == pytest.approx(1.235e-6)


def test_a_full_profile_of_both_sides_stays_below_170_kb() -> None:
    rows = [
        row(
            each.op, each.type, each.shape, each.new_tokens, 1.2345e-5 * (at + 1), on=each.on
        )
        for at, each in enumerate(Requests(fake_machine(), full=True).all())
    ]  # fmt: skip
    assert len(ProfileDocument(IDENTITY, tuple(rows)).to_json().encode()) < 170_000


def test_newer_rows_replace_those_of_equal_requests() -> None:
    slower = replace(DOCUMENT.measurements[0], seconds=1.0)
    merged = DOCUMENT.merged([slower])
    assert len(merged.measurements) == len(DOCUMENT.measurements)
    assert merged.measurements[0].seconds == 1.0


def test_a_newer_version_is_refused_by_name() -> None:
    text = DOCUMENT.to_json().replace("xlm.profile/1", "xlm.profile/2")
    with pytest.raises(ProfileError, match=r"of version 'xlm\.profile/2'"):
        ProfileDocument.from_json(text)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_document_that_is_cut_short_is_refused(share: float) -> None:
    text = DOCUMENT.to_json()
    with pytest.raises(ProfileError, match="cut short"):
        ProfileDocument.from_json(text[: int(len(text) * share)])


@pytest.mark.parametrize("nanoseconds", [0, -5, 1e300, float("nan"), "fast", None])
def test_times_that_no_machine_takes_are_refused(nanoseconds: object) -> None:
    document = json.loads(DOCUMENT.to_json())
    document["rows"][0][7] = nanoseconds
    with pytest.raises(ProfileError, match="cannot be used"):
        ProfileDocument.from_json(json.dumps(document))


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [[]]},
        {"rows": 3},
        {"columns": []},
        {"machine": {"device": "X"}},
        {"machine": {"surprise": 1}},
        {"origins": []},
        {"origins": [["a", "not a day"]]},
    ],
)
def test_what_is_no_profile_inside_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ProfileError, match="cannot be used"):
        ProfileDocument.from_json(json.dumps({**json.loads(DOCUMENT.to_json()), **change}))


def test_another_document_is_no_profile(tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text("{}")
    with pytest.raises(ProfileError, match="not a profile"):
        ProfileDocument.read(path)
