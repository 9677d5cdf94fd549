"""Names of Ollama's models: ``[HOST/][NAMESPACE/]MODEL[:TAG]``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from xlm_plugin.errors import UsageError

_HOST: Final = "registry.ollama.ai"
_NAMESPACE: Final = "library"
_TAG: Final = "latest"
_NAME: Final = re.compile(
    r"(?:(?:(?P<host>[\w.:-]+)/)?(?P<namespace>[\w.-]+)/)?(?P<model>[\w.-]+)(?::(?P<tag>[\w.-]+))?", re.ASCII
)


@dataclass(frozen=True, slots=True, order=True)
class ModelName:
    """The full name of a model."""

    host: str
    namespace: str
    model: str
    tag: str

    @classmethod
    def parse(cls, text: str) -> ModelName:
        """Return the name in ``text``. Raises UsageError where it is none."""
        match = _NAME.fullmatch(text)
        if match is None or ".." in text:
            raise UsageError(f"'{text}' is not a name of an Ollama model.", "Write one such as qwen3:30b.")
        return cls(
            match["host"] or _HOST, match["namespace"] or _NAMESPACE, match["model"], match["tag"] or _TAG
        )

    @property
    def path(self) -> PurePosixPath:
        """Where the manifest lies below the manifests' folder."""
        return PurePosixPath(self.host, self.namespace, self.model, self.tag)

    def with_option(self) -> ModelName:
        """Return the name that the model gets with an option: its own, with ``-xlm`` behind the tag."""
        return ModelName(self.host, self.namespace, self.model, f"{self.tag}-xlm")

    def __str__(self) -> str:
        """Return the name as Ollama shows it, without what goes without saying."""
        parts = [f"{self.model}:{self.tag}"]
        if self.namespace != _NAMESPACE or self.host != _HOST:
            parts.insert(0, self.namespace)
        if self.host != _HOST:
            parts.insert(0, self.host)
        return "/".join(parts)
