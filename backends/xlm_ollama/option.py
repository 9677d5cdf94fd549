"""The per-model option: a GGUF adapter without tensors that a Modelfile names as ``ADAPTER``.

Ollama hands it to llama-server as ``--lora``. A stock llama-server loads it as an empty adapter where
``general.architecture`` is the model's own (llama.cpp b10488, ``llama-adapter.cpp``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

from xlm_plugin.errors import ModelError, XlmError
from xlm_plugin.plan.strategy import Objective
from xlm_plugin.text_files import replacing
from xlm_plugin.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from xlm_plugin.model.stored import Value

VERSION: Final = 1
LARGEST_BYTES: Final = 1024
PRIORITIES: Final = range(-100, 101)

# Ollama's own engine had other names for these (its converter's, and those of its model files).
_LLAMA_CPP_NAMES: Final = {"gptoss": "gpt-oss", "qwen25vl": "qwen2vl"}


class OptionError(XlmError):
    """An option's file cannot be read, written, or used."""


@dataclass(frozen=True, slots=True)
class Option:
    """What a model asks of xlm. ``budget_bytes`` is None for what is free at the start (``auto``).

    Of several models that want the device, the one with the higher ``priority`` stays. ``base`` is the
    model that ``xlm ollama enable`` gave the option to, empty where a person did it.
    """

    budget_bytes: int | None = None
    objective: Objective = "e2e"
    priority: int = 0
    base: str = ""

    def __str__(self) -> str:
        """Return the option as a person reads it."""
        vram = "auto" if self.budget_bytes is None else format_bytes(self.budget_bytes)
        return f"{vram}, {self.objective}" + (f", priority {self.priority}" if self.priority else "")


def write_option(option: Option, architecture: str, path: Path) -> None:
    """Write ``option`` for models of ``architecture`` to ``path``, whole or not at all.

    Equal options are equal bytes. Raises OptionError where the file cannot be written.
    """
    from gguf import GGUFWriter

    try:
        with replacing(path) as part:
            writer = GGUFWriter(part, _LLAMA_CPP_NAMES.get(architecture, architecture))
            writer.add_type("adapter")
            writer.add_string("adapter.type", "lora")
            writer.add_float32("adapter.lora.alpha", 1.0)
            writer.add_uint32("xlm.version", VERSION)
            writer.add_uint64("xlm.budget_bytes", option.budget_bytes or 0)
            writer.add_string("xlm.objective", option.objective)
            writer.add_int32("xlm.priority", option.priority)
            writer.add_string("xlm.base", option.base)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.close()
    except OSError as fault:
        raise OptionError(f"The option cannot be written to {path}: {fault.strerror or fault}.") from None


def is_option(path: Path) -> bool:
    """Return whether the file is an option, also one that is damaged. False for what cannot be read."""
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_BYTES + 1)
    except OSError:
        return False
    tensors = int.from_bytes(data[8:16], "little")
    return len(data) <= LARGEST_BYTES and data[:4] == b"GGUF" and not tensors and b"xlm." in data


def read_option(path: Path) -> Option:
    """Return the option in the file ``path``. Raises OptionError for one that is damaged, or too new."""
    from xlm_plugin.model.gguf_header import read_header

    try:
        keys = read_header(path).metadata
    except ModelError as fault:
        raise OptionError(f"The option is damaged: {fault.message}", "Write it anew.") from None
    version = keys.get("xlm.version")
    if version != VERSION:
        raise OptionError(f"The option {path} is of version {version}; this xlm reads {VERSION}.")
    option = _option(keys)
    if option is None:
        raise OptionError(f"The option {path} is damaged: its keys have wrong values.", "Write it anew.")
    return option


def _option(keys: Mapping[str, Value]) -> Option | None:
    budget_bytes = keys.get("xlm.budget_bytes")
    objective = keys.get("xlm.objective")
    priority = keys.get("xlm.priority")
    known: dict[object, Objective] = {name: name for name in get_args(Objective)}
    if not isinstance(budget_bytes, int) or not isinstance(priority, int) or objective not in known:
        return None
    if priority not in PRIORITIES:
        return None
    return Option(budget_bytes or None, known[objective], priority, str(keys.get("xlm.base", "")))
