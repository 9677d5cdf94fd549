"""A real ``vllm serve``, started by our command, and asked over HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from integration.vllm.conftest import ENVIRONMENT

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_SECONDS = 240
_NAME = "tiny"


@dataclass(frozen=True)
class VllmServer:
    """A running server, and the process ids of its workers."""

    client: httpx.Client
    log: Path

    def get(self, path: str) -> Any:
        return self.client.get(path).raise_for_status().json()

    def post(self, path: str, body: object = None) -> Any:
        return self.client.post(path, json=body).raise_for_status().json()

    def tokens(self, prompt: str, new_tokens: int) -> list[str]:
        """Return the greedy continuation, a token each."""
        return list(self.stream(prompt, new_tokens))

    def stream(self, prompt: str, new_tokens: int) -> Iterator[str]:
        """Yield the greedy continuation as it comes."""
        body = {
            "model": _NAME,
            "prompt": prompt,
            "max_tokens": new_tokens,
            "temperature": 0,
            "ignore_eos": True,
            "stream": True,
            "logprobs": 0,
        }
        with self.client.stream("POST", "/v1/completions", json=body) as response:
            response.raise_for_status()
            for line in response.iter_lines():
                _, _, data = line.partition("data: ")
                if data and data != "[DONE]":
                    yield from json.loads(data)["choices"][0]["logprobs"]["tokens"]


@contextmanager
def served(folder: Path, port: int, log: Path, *options: str, dtype: str = "float32") -> Iterator[VllmServer]:
    """Run ``xlm vllm serve`` for the model in ``folder`` and yield it once it answers."""
    xlm = Path(sys.executable).with_name("xlm")
    extra = ["--enforce-eager", "--dtype", dtype, "--served-model-name", _NAME]
    command = [xlm, "vllm", "serve", folder, *options, "--", *extra, "--host", "127.0.0.1", "--port", port]
    environment = {**os.environ, **ENVIRONMENT, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    # Our command says itself how much the cache takes.
    del environment["VLLM_CPU_KVCACHE_SPACE"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            _wait_for(client, process, log)
            yield VllmServer(client, log)
    finally:
        _end(process)


def _wait_for(client: httpx.Client, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        try:
            if client.get("/health").is_success:
                return
        except httpx.TransportError:
            time.sleep(0.5)
    raise AssertionError(f"vLLM did not start:\n{log.read_text()[-20000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
