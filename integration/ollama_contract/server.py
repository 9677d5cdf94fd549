"""Ollama's scheduler as far as an engine notices: one runner for a blob, and when it is started anew."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from integration.ollama_contract.discovery import FoundDevice, discover
from integration.ollama_contract.runner import Runner, free_port

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from integration.ollama_contract.layout import OllamaLayout


@dataclass(frozen=True)
class OllamaModel:
    """A model as its Modelfile makes it; None leaves a parameter to Ollama or to llama-server."""

    blob: Path
    adapters: tuple[Path, ...] = ()
    projector: Path | None = None
    num_ctx: int = 512
    num_batch: int | None = 64
    num_gpu: int | None = None
    num_thread: int | None = 2
    main_gpu: int | None = None
    num_parallel: int = 1
    # What a later Ollama may give beside all that.
    later: tuple[str, ...] = ()


@dataclass
class Ollama:
    """``ollama serve`` with the given environment, which its engines inherit."""

    layout: OllamaLayout
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    devices: list[FoundDevice] = field(default_factory=list)
    _runners: dict[Path, tuple[OllamaModel, Runner]] = field(default_factory=dict)

    def __enter__(self) -> Ollama:
        self.devices = discover(self.layout, self.environment)
        return self

    def __exit__(self, *exception: object) -> None:
        for blob in list(self._runners):
            self.stop(blob)

    def run(self, model: OllamaModel) -> Runner:
        """Return the runner of ``model``'s blob, started anew where anything of the model is another.

        Raises LoadError where it does not come up.
        """
        current = self._runners.get(model.blob)
        if current and current[0] == model and current[1].is_alive:
            return current[1]
        self.stop(model.blob)
        runner = self.start(model)
        self._runners[model.blob] = model, runner
        runner.wait_until_ready()
        return runner

    def start(self, model: OllamaModel) -> Runner:
        """Return a new llama-server for ``model`` that may not be ready yet."""
        port = free_port()
        device = max(self.devices, key=lambda found: found.free_bytes, default=None)
        command = [str(self.layout.server), *start_arguments(model, port, device)]
        folder = device.folder if device and model.num_gpu != 0 else None
        return Runner(command, self.layout.environment(folder, self.environment), port)

    def stop(self, blob: Path) -> None:
        """End the runner of ``blob`` if there is one."""
        if current := self._runners.pop(blob, None):
            current[1].close()


def start_arguments(model: OllamaModel, port: int, device: FoundDevice | None) -> list[str]:
    """Return the arguments that Ollama starts llama-server with (``llm/llama_server.go``)."""
    # fmt: off
    arguments = [
        "--model", str(model.blob), "--port", str(port), "--host", "127.0.0.1", "--no-webui", "--offline",
        "-c", str(model.num_ctx * model.num_parallel), "-np", str(model.num_parallel),
        "--log-verbosity", "4", "--no-log-prefix", "--no-log-timestamps",
        "--no-jinja", "--chat-template", "chatml",
    ]
    # fmt: on
    if model.projector:
        arguments += ["--mmproj", str(model.projector)]
        if model.num_gpu is not None:
            arguments += ["--no-mmproj-offload"]
    for adapter in model.adapters:
        arguments += ["--lora", str(adapter)]
    arguments += ["--flash-attn", device.flash_attention if device else "auto"]
    if model.num_batch is not None:
        arguments += ["-b", str(model.num_batch), "-ub", str(model.num_batch)]
    if model.num_gpu is not None:
        arguments += ["-ngl", str(model.num_gpu)]
    if model.num_thread is not None:
        arguments += ["-t", str(model.num_thread)]
    if model.main_gpu is not None:
        arguments += ["--split-mode", "none", "--main-gpu", str(model.main_gpu)]
    return [*arguments, *model.later]
