"""One llama-server that Ollama runs: its start, its health, its log, and its end by SIGKILL."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

from integration.ollama_contract.log import EngineLog

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from xlm_plugin.backend import Completion

# Ollama waits 5 minutes for another line (OLLAMA_LOAD_TIMEOUT), and for ever for the end of the pipe.
_STALL_SECONDS = 60
_PIPE_SECONDS = 10
_POLL_SECONDS = 0.05


class LoadError(Exception):
    """The engine did not come up; the text is its last line, which Ollama shows to its user."""


def free_port() -> int:
    """Return a port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


class Runner:
    """A llama-server. Stdout and stderr are one pipe, as Ollama has it."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], port: int) -> None:
        self.log = EngineLog()
        self.url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            list(command),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    @property
    def command_line(self) -> list[str]:
        """The arguments that the process has now."""
        return Path(f"/proc/{self.pid}/cmdline").read_text(encoding="utf-8").split("\0")[:-1]

    def wait_until_ready(self) -> None:
        """Return when the engine is healthy. Raises LoadError when it ends or says nothing for too long."""
        import httpx

        seen, since = -1, time.monotonic()
        with httpx.Client(base_url=self.url, timeout=10, trust_env=False) as client:
            while self.is_alive:
                try:
                    if client.get("/health").json() == {"status": "ok"}:
                        return
                except (httpx.TransportError, ValueError):
                    pass
                if len(self.log.lines) != seen:
                    seen, since = len(self.log.lines), time.monotonic()
                if time.monotonic() - since > _STALL_SECONDS:
                    raise LoadError("timed out waiting for llama runner to start")
                time.sleep(_POLL_SECONDS)
        self._reader.join(_PIPE_SECONDS)
        failures = self.log.failures or self.log.lines or ["no line"]
        raise LoadError(failures[-1])

    def wait_for_line(self, words: str) -> None:
        """Return when a line of the log has these words. Raises LoadError when none comes for too long."""
        since = time.monotonic()
        while not any(words in line for line in self.log.lines):
            if time.monotonic() - since > _STALL_SECONDS:
                raise LoadError(f"no line says '{words}'")
            time.sleep(_POLL_SECONDS)

    def complete(self, prompt: str, new_tokens: int) -> Completion:
        """Return the greedy continuation of ``prompt``."""
        from xlm_llamacpp.completion import complete

        return complete(self.url, prompt, new_tokens)

    def close(self) -> None:
        """Kill the engine and wait for the end of its output, as Ollama does while it holds its lock."""
        self._process.kill()
        self._reader.join(_PIPE_SECONDS)
        assert not self._reader.is_alive(), "something holds the engine's pipe: Ollama would hang"
        self._process.wait()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self.log.read(line.rstrip("\n"))
