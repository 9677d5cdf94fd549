"""A llama-server process: start it, wait until it answers, stop it, and tell why it died."""

from __future__ import annotations

import collections
import errno
import os
import signal
import socket
import subprocess
import threading
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from xlm_llamacpp import runtime
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from xlm_plugin.backend import Completion, LaunchSpec

DEVICE_ERROR = "xlm: error: "

_KEPT_LINES = 2000
_SHOWN_LINES = 8
_STOP_SECONDS = 10
_POLL_SECONDS = 0.05
_PRINTED_WITHIN_SECONDS = 0.2


class ServerProcess:
    """A running llama-server. Leaving the context stops it and removes its runtime directory."""

    def __init__(self, process: subprocess.Popen[str], spec: LaunchSpec) -> None:
        self.pid = process.pid
        self.url = spec.url
        self.directory = spec.socket.parent if spec.socket else None
        self._process = process
        self._stopping = False
        self._device_errors: list[str] = []
        self._output: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._reader = threading.Thread(target=self._read_output, daemon=True)
        self._reader.start()

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def complete(
        self,
        prompt: str,
        new_tokens: int,
        *,
        chat: bool = False,
        on_text: Callable[[str], None] | None = None,
    ) -> Completion:
        """Return the greedy continuation of ``prompt``. Raises EngineError when the engine fails."""
        from xlm_llamacpp.completion import EngineLostError, complete

        known = len(self._device_errors)
        try:
            return complete(self.url, prompt, new_tokens, chat=chat, on_text=on_text)
        except EngineLostError:
            # The connection breaks a moment before a dying process is gone.
            if self._ends_within(1):
                raise self.death("while it answered") from None
            raise
        except EngineError:
            if reason := self._device_error_after(known):
                raise _refusal(reason) from None
            raise

    def wait(self) -> int:
        """Wait until the process ends and return 0. Raises EngineError where it fails."""
        if self._process.wait() != 0 and not self._stopping:
            raise self.death("while it served")
        return 0

    def wait_until_ready(self) -> None:
        """Return when the server answers; raises EngineError when it dies before that."""
        import httpx

        with httpx.Client(base_url=self.url, timeout=5, trust_env=False) as client:
            while self._process.poll() is None:
                try:
                    if client.get("/health").status_code == httpx.codes.OK:
                        return
                except httpx.TransportError:
                    pass
                time.sleep(_POLL_SECONDS)
        raise self.death("while it loaded the model")

    def stop(self) -> None:
        """End the process, by force if it does not go in time or the wait is interrupted."""
        self._stopping = True
        try:
            self._process.terminate()
            self._ends_within(_STOP_SECONDS)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            assert self._process.stdin is not None
            self._process.stdin.close()
            if self.directory is not None:
                runtime.remove(self.directory)

    def death(self, when: str) -> EngineError:
        """Return why the process ended: the device's own sentence, or the last lines that it printed."""
        self._reader.join()
        lines = [line for line in self._output if line.strip()]
        if self._device_errors:
            return _refusal(self._device_errors[0])
        last = "".join(f"\n  {line}" for line in lines[-_SHOWN_LINES:])
        log = self._keep_output()
        return EngineError(
            f"llama-server {_ending(self._process.wait())} {when}. Its last lines:{last or ' none'}",
            f"\nAll of them are in {log}." if log else "",
        )

    def _ends_within(self, seconds: float) -> bool:
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def _device_error_after(self, known: int) -> str | None:
        """Return the first device error after the ``known`` ones; the answer may overtake what is printed."""
        until = time.monotonic() + _PRINTED_WITHIN_SECONDS
        while len(self._device_errors) == known and time.monotonic() < until:
            time.sleep(_POLL_SECONDS)
        return self._device_errors[known] if len(self._device_errors) > known else None

    def _read_output(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as output:
            for line in output:
                self._output.append(line.rstrip())
                if line.startswith(DEVICE_ERROR):
                    self._device_errors.append(line.removeprefix(DEVICE_ERROR).rstrip())

    def _keep_output(self) -> Path | None:
        import platformdirs

        log = platformdirs.user_log_path("xlm-plugin") / "llama-server.log"
        try:
            log.parent.mkdir(parents=True, exist_ok=True)
            unfinished = log.with_suffix(f".{os.getpid()}")
            unfinished.write_text("\n".join([*self._output, ""]), encoding="utf-8")
            unfinished.replace(log)
        except OSError:
            return None
        return log


def start(spec: LaunchSpec) -> ServerProcess:
    """Start the process of ``spec`` and return when it answers.

    Raises EngineError where the port is taken or the process cannot start or dies.
    """
    _refuse_taken_port(spec.url)
    directory = spec.socket.parent if spec.socket else None
    if directory is not None:
        runtime.create(directory)
        _write_files(directory, spec.files)
    try:
        process = subprocess.Popen(
            spec.command,
            env=_environment(spec),
            # Held open: the device ends the engine when we are gone, even if we were killed.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            # Ctrl-C reaches only us; we stop the engine in order.
            start_new_session=True,
        )
    except OSError as error:
        if directory is not None:
            runtime.remove(directory)
        raise EngineError(
            f"{spec.command[0]} cannot be started: {error.strerror}.",
            "Build the engine with 'xlm engine build'.",
        ) from None
    server = ServerProcess(process, spec)
    try:
        if directory is not None:
            runtime.write_record(directory, server.pid, spec.url, spec.name)
        server.wait_until_ready()
    except BaseException:
        server.stop()
        raise
    return server


def _write_files(directory: Path, files: Mapping[Path, str]) -> None:
    try:
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
    except OSError as error:
        runtime.remove(directory)
        raise EngineError(
            f"Nothing can be written to {directory}: {error.strerror}.",
            "Make room there, or set XDG_RUNTIME_DIR to another directory.",
        ) from None


def _environment(spec: LaunchSpec) -> dict[str, str]:
    """Return our environment under that of ``spec``.

    Without the device settings of an outer engine, and without llama-server's own settings
    (``LLAMA_ARG_...``): they would place weights and caches behind the plan's back.
    """
    ours = ("XLM_END_WITH_STDIN", "XLM_PLAN", "XLM_DEVICE", "XLM_SOCKET", "XLM_EMULATED", "GGML_BACKEND_PATH")
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ours and not name.startswith("LLAMA_ARG_")
    }
    return {**inherited, "XLM_END_WITH_STDIN": "1", **spec.environment}


def _refuse_taken_port(url: str) -> None:
    parts = urlsplit(url)
    assert parts.hostname is not None
    family = socket.AF_INET6 if ":" in parts.hostname else socket.AF_INET
    try:
        socket.create_server((parts.hostname, parts.port or 80), family=family).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise EngineError(
                f"Port {parts.port} is taken.", "Choose another with --port, or 0 for any free one."
            ) from None
        raise EngineError(
            f"Nothing can listen at {url}: {error.strerror or error}.", "Try --host 127.0.0.1 --port 0."
        ) from None


def _refusal(reason: str) -> EngineError:
    return EngineError(f"The device refused: {reason.rstrip('.')}.")


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"ended with exit code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"was ended by {name}"
