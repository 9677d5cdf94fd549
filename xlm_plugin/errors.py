"""The one exception tree. Each error is a sentence for a person, with what to do next."""

from __future__ import annotations


class XlmError(Exception):
    """Anything that a user can act on.

    ``message`` is one clear sentence; ``hint`` says what to do next. ``exit_code`` is what the
    command line returns: 1 for an error, 3 for something that does not fit.
    """

    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class UsageError(XlmError):
    """A value that the user gave cannot be used (a size without a unit, an unknown cache type)."""


class ModelError(XlmError):
    """A model file or folder cannot be read, or is not what its plan says."""


class PlanError(XlmError):
    """A plan document is malformed, of another version, or for another model."""


class ProfileError(XlmError):
    """A profile cannot be read, is of another machine, or says what no machine can do."""


class DoesNotFitError(XlmError):
    """The model does not fit the budget; ``missing_bytes`` more would do."""

    exit_code = 3

    def __init__(self, message: str, hint: str = "", *, missing_bytes: int = 0) -> None:
        super().__init__(message, hint)
        self.missing_bytes = missing_bytes


class EngineError(XlmError):
    """An engine cannot be built, found, started or spoken to."""


class PluginError(XlmError):
    """No plugin answers a hook that a command needs."""
