"""The plugin manager. Built-in plugins come in by the same entry points as third parties'."""

from __future__ import annotations
