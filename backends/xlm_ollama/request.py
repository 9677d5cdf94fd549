"""The arguments that Ollama starts llama-server with, read and rewritten."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from xlm_llamacpp.launch import EMULATED_ARGUMENTS
from xlm_ollama.option import OptionError, is_option, read_option
from xlm_plugin.errors import UsageError
from xlm_plugin.model.cache import CacheType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from xlm_ollama.option import Option

# All that Ollama gives (llm/llama_server.go, 2026-08). What it gives beside them may change what a plan pays
# for, so a start with anything else stays stock.
# fmt: off
_WITH_VALUE: Final = frozenset({
    "--model", "--port", "--host", "-c", "-np", "--log-verbosity", "--chat-template", "--mmproj",
    "--image-min-tokens", "--lora", "--load-mode", "--cache-type-k", "--cache-type-v", "--flash-attn",
    "-b", "-ub", "-ngl", "-t", "--split-mode", "--main-gpu", "--keep",
})
_FLAGS: Final = frozenset({
    "--no-webui", "--offline", "--no-log-prefix", "--no-log-timestamps", "--no-jinja",
    "--no-mmproj-offload", "--embedding", "--context-shift",
})
# What the plan decides, or what is about other devices than its own.
_DECIDED: Final = frozenset({
    "-b", "-ub", "-ngl", "--split-mode", "--main-gpu", "--flash-attn", "--no-mmproj-offload",
})
# fmt: on

# llama-server's own (b10488, common.h); Ollama gives the same number for both where it gives one.
_DEFAULT_UBATCH_TOKENS = 512


@dataclass(frozen=True, slots=True)
class StartContext:
    """The context of a start; ``tokens`` is the total over all sequences."""

    tokens: int
    sequences: int = 1
    ubatch_tokens: int = _DEFAULT_UBATCH_TOKENS
    kv_type_k: CacheType = "f16"
    kv_type_v: CacheType = "f16"
    flash_attention: bool = True


@dataclass(frozen=True, slots=True)
class StartRequest:
    """A start of llama-server. ``arguments`` are pairs, flags with the value None."""

    arguments: tuple[tuple[str, str | None], ...]

    @classmethod
    def parse(cls, arguments: Sequence[str]) -> StartRequest:
        """Return the start with ``arguments``. Raises UsageError for one that Ollama is not known to give."""
        return cls(tuple(_pairs(iter(arguments))))

    def value(self, name: str) -> str | None:
        """Return the last value of ``name``, which is the one that counts, or None."""
        return next(reversed(self.values(name)), None)

    def values(self, name: str) -> tuple[str, ...]:
        """Return all values of ``name``."""
        return tuple(value for found, value in self.arguments if found == name and value is not None)

    def has(self, flag: str) -> bool:
        """Return whether ``flag`` is there."""
        return (flag, None) in self.arguments

    @property
    def model(self) -> Path:
        """The model's file. Raises UsageError where none is named."""
        path = self.value("--model")
        if path is None:
            raise UsageError("Ollama names no model.")
        return Path(path)

    @property
    def adapters(self) -> tuple[Path, ...]:
        """The files of the model's own adapters, options left out."""
        paths = map(Path, self.values("--lora"))
        return tuple(path for path in paths if not is_option(path))

    @property
    def option(self) -> Option:
        """The option; of several the last one, which is the one of the Modelfile that was written last.

        Raises OptionError where there is none, or it is damaged.
        """
        paths = [Path(path) for path in self.values("--lora") if is_option(Path(path))]
        if not paths:
            raise OptionError("None of the model's adapters is an option of xlm.")
        return read_option(paths[-1])

    @property
    def gpu_index(self) -> int | None:
        """The device that ``main_gpu`` chooses."""
        return self._count("--main-gpu", least=0) if self.value("--main-gpu") else None

    @property
    def is_for_cpu(self) -> bool:
        """Whether ``num_gpu 0`` keeps the model off all devices."""
        return self.value("-ngl") == "0"

    @property
    def context(self) -> StartContext:
        """The context. Raises UsageError for numbers and types that are none."""
        if self.value("-c") is None:
            raise UsageError("Ollama names no context.")
        return StartContext(
            tokens=self._count("-c"),
            sequences=self._count("-np") if self.value("-np") else 1,
            ubatch_tokens=self._count("-ub") if self.value("-ub") else _DEFAULT_UBATCH_TOKENS,
            kv_type_k=self._cache_type("--cache-type-k"),
            kv_type_v=self._cache_type("--cache-type-v"),
            flash_attention=self.value("--flash-attn") != "off",
        )

    def planned(self, *, emulated: bool = False) -> list[str]:
        """Return the arguments of the same start under a plan, on our device.

        A projector stays on the CPU: the plan has no room for it.
        """
        context = self.context
        kept = [
            (name, value)
            for name, value in self.arguments
            if name not in _DECIDED
            and not (name == "--lora" and value is not None and is_option(Path(value)))
        ]
        arguments = [part for pair in kept for part in pair if part is not None]
        ubatch = str(context.ubatch_tokens)
        arguments += ["--device", "XLM0", "--n-gpu-layers", "all", "--fit", "off"]
        arguments += ["--batch-size", ubatch, "--ubatch-size", ubatch]
        arguments += ["--flash-attn", "on" if context.flash_attention else "off"]
        if self.value("--mmproj"):
            arguments.append("--no-mmproj-offload")
        if emulated:
            arguments += EMULATED_ARGUMENTS
        return arguments

    def _count(self, name: str, least: int = 1) -> int:
        text = self.value(name) or ""
        if not text.isdecimal() or int(text) < least:
            raise UsageError(
                f"Ollama gives {name} the value '{text}', which is not a number from {least} on."
            )
        return int(text)

    def _cache_type(self, name: str) -> CacheType:
        known: dict[str, CacheType] = {cache_type: cache_type for cache_type in get_args(CacheType)}
        text = self.value(name) or "f16"
        if text not in known:
            raise UsageError(f"Ollama wants a cache of type '{text}', which xlm does not know.")
        return known[text]


def _pairs(arguments: Iterator[str]) -> Iterable[tuple[str, str | None]]:
    for name in arguments:
        if name in _FLAGS:
            yield name, None
            continue
        value = next(arguments, None) if name in _WITH_VALUE else None
        if value is None:
            raise UsageError(f"Ollama gives llama-server '{name}' in a way that this xlm does not know.")
        yield name, value
