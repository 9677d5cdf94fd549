"""What a person sees while an engine is built."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import TaskID

_LINE_EVERY = 0.25


class Progress:
    """An observer of a build; this one shows nothing."""

    def step(self, title: str) -> None:
        """Begin a step; the one before is over."""

    def advance(self, done: int, total: int) -> None:
        """Tell how far the step is, in files."""

    def note(self, text: str) -> None:
        """Tell something beside the steps."""


class _Lines(Progress):
    """Few plain lines, for a log."""

    def __init__(self) -> None:
        self._started = 0.0
        self._shown = 0.0

    def step(self, title: str) -> None:
        self.note(f"{title} ...")
        self._started = time.monotonic()
        self._shown = 0.0

    def advance(self, done: int, total: int) -> None:
        share = done / total
        if share < self._shown + _LINE_EVERY or done == total:
            return
        self._shown = share
        left = (time.monotonic() - self._started) * (1 - share) / share
        self.note(f"  {share:.0%}, about {_duration(left)} left")

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class _Bars(Progress):
    """One bar for each step, with the time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.bars = Bars(*columns, console=Console(stderr=True, markup=False, highlight=False))
        self._task: TaskID | None = None

    def step(self, title: str) -> None:
        self.finish()
        self._task = self.bars.add_task(title, total=None)

    def advance(self, done: int, total: int) -> None:
        if self._task is not None:
            self.bars.update(self._task, completed=done, total=total)

    def note(self, text: str) -> None:
        self.bars.console.print(text)

    def finish(self) -> None:
        """Fill the bar of the step that is over."""
        if self._task is not None:
            total = self.bars.tasks[self._task].total or 1
            self.bars.update(self._task, completed=total, total=total)


@contextmanager
def terminal_progress() -> Iterator[Progress]:
    """Show progress on stderr: bars on a terminal, else few plain lines."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    progress = _Bars()
    with progress.bars:
        yield progress
        progress.finish()


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
