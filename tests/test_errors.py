"""Errors are sentences with an exit code."""

from __future__ import annotations

import pytest

from xlm_plugin.errors import (
    DoesNotFitError,
    EngineError,
    ModelError,
    PlanError,
    PluginError,
    UsageError,
    XlmError,
)


@pytest.mark.parametrize("kind", [EngineError, ModelError, PlanError, PluginError, UsageError, XlmError])
def test_errors_exit_with_1(kind: type[XlmError]) -> None:
    assert kind("It is broken.").exit_code == 1


def test_what_does_not_fit_exits_with_3_and_knows_the_missing_bytes() -> None:
    error = DoesNotFitError("It does not fit.", missing_bytes=42)
    assert (error.exit_code, error.missing_bytes) == (3, 42)


def test_an_error_reads_as_its_message_and_hint() -> None:
    assert str(XlmError("It is broken.", "Mend it.")) == "It is broken. Mend it."


def test_an_error_without_a_hint_reads_as_its_message() -> None:
    assert str(XlmError("It is broken.")) == "It is broken."
