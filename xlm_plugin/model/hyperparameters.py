"""Typed access to a model's hyper-parameters, under GGUF's key names without the architecture."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from xlm_plugin.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from xlm_plugin.model.stored import Value

# Far above any model, and low enough that a damaged file cannot make us count for long.
_MAX_VALUE = 1 << 31
_MAX_LAYERS = 4096


class Hyperparameters:
    """What the file ``path`` says about ``architecture``.

    All accessors raise ModelError for values of another kind than asked.
    """

    def __init__(self, path: Path, architecture: str, metadata: Mapping[str, Value]) -> None:
        self.architecture = architecture
        self._path = path
        self._values = {
            key.removeprefix(f"{architecture}."): value
            for key, value in metadata.items()
            if key.startswith(f"{architecture}.")
        }

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def items(self) -> list[tuple[str, Value]]:
        """Return all hyper-parameters, sorted by name."""
        return sorted(self._values.items())

    def integer(self, key: str, default: int | None = None) -> int:
        """Return a whole number, or the largest of a list of them. Without a default it must be there."""
        value = self._values.get(key, default)
        if value is None:
            raise ModelError(f"{self._path} lacks '{self.architecture}.{key}', so its size cannot be told.")
        return max(
            (self._number(key, each) for each in (value if isinstance(value, tuple) else (value,))), default=0
        )

    def per_layer(self, key: str, layers: int, default: int) -> tuple[int, ...]:
        """Return at least ``layers`` whole numbers; a single one in the file counts for all layers."""
        value = self._values.get(key, default)
        if not isinstance(value, tuple):
            return (self._number(key, value),) * layers
        if len(value) < layers:
            self._refuse(key, f"has {len(value)} entries for {layers} layers")
        return tuple(self._number(key, each) for each in value)

    def is_list(self, key: str) -> bool:
        """Tell whether the value is a list."""
        return isinstance(self._values.get(key), tuple)

    def block_count(self) -> int:
        """Return the number of blocks, MTP blocks included."""
        blocks = self.integer("block_count")
        if not 0 < blocks <= _MAX_LAYERS:
            self._refuse("block_count", f"is {blocks}")
        return blocks

    def _number(self, key: str, value: object) -> int:
        if not isinstance(value, int) or not 0 <= value < _MAX_VALUE:
            self._refuse(key, f"is {value!r}")
        return int(value)

    def _refuse(self, key: str, fault: str) -> NoReturn:
        raise ModelError(f"{self._path} is damaged: '{self.architecture}.{key}' {fault}.")
