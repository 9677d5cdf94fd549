"""Commands of a build: logged, watched line by line, and ended with us."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import TextIO


@dataclass(frozen=True, slots=True)
class Finished:
    """What a command returned and printed."""

    exit_code: int
    lines: list[str]


class BuildLog:
    """A log file that commands are run into."""

    def __init__(self, path: Path, stream: TextIO) -> None:
        self.path = path
        self._stream = stream

    def run(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        on_line: Callable[[str], None] = lambda _: None,
    ) -> Finished:
        """Run ``command`` with ``environment`` on top of ours; ``on_line`` sees each line as it comes."""
        self._write(f"$ {shlex.join(command)}\n")
        lines = []
        process = subprocess.Popen(
            command,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # A group of its own, so that one signal ends the compilers too.
            start_new_session=True,
        )
        assert process.stdout is not None
        with process.stdout as output:
            try:
                for line in output:
                    self._write(line)
                    lines.append(line.rstrip())
                    on_line(lines[-1])
            except BaseException:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait()
                raise
        return Finished(process.wait(), lines)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
