"""The Ollama server, by its official Python client, with one sentence for each way that it can fail."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from xlm_ollama.names import ModelName
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import ollama

_CONNECT_SECONDS = 5
# Making a model from another one copies nothing, but a busy disk may take its time.
_ANSWER_SECONDS = 300


class OllamaError(EngineError):
    """The Ollama server cannot be reached, or refuses."""


class OllamaServer:
    """A server at ``$OLLAMA_HOST``, or on this machine. Every method raises OllamaError."""

    def __init__(self) -> None:
        try:
            import ollama
        except ImportError:
            raise OllamaError(
                "Ollama's Python client is not installed.", "Run: pip install 'xlm-plugin[ollama]'."
            ) from None
        import httpx

        with _talking():
            self._client = ollama.Client(timeout=httpx.Timeout(_ANSWER_SECONDS, connect=_CONNECT_SECONDS))

    def names(self) -> list[ModelName]:
        """Return the names of all models."""
        with _talking():
            listed = self._client.list().models
        return [ModelName.parse(model.model) for model in listed if model.model]

    def show(self, name: ModelName) -> ollama.ShowResponse:
        """Return what the server says about the model."""
        with _talking(name):
            return self._client.show(str(name))

    def has(self, name: ModelName) -> bool:
        """Return whether there is such a model."""
        return name in self.names()

    def create(
        self, name: ModelName, base: ModelName, adapter: Path, parameters: Mapping[str, int] | None = None
    ) -> None:
        """Make the model ``name`` of all that ``base`` has, and ``adapter``."""
        with _talking(base):
            digest = self._client.create_blob(adapter)
            self._client.create(
                model=str(name), from_=str(base), adapters={"xlm.gguf": digest}, parameters=parameters
            )

    def delete(self, name: ModelName) -> None:
        """Remove the model. Files that other models have too stay."""
        with _talking(name):
            self._client.delete(str(name))


@contextmanager
def _talking(name: ModelName | None = None) -> Iterator[None]:
    import httpx
    import ollama

    try:
        yield
    except ollama.ResponseError as error:
        if error.status_code == 404 and name is not None:
            raise OllamaError(
                f"Ollama has no model '{name}'.", f"See 'ollama list', or run 'ollama pull {name}'."
            ) from None
        raise OllamaError(f"Ollama refuses: {error.error.rstrip('.')}.") from None
    except (ConnectionError, httpx.HTTPError) as error:
        reason = "it takes too long to answer" if isinstance(error, httpx.TimeoutException) else "it is down"
        raise OllamaError(
            f"The Ollama server cannot be reached: {reason}.",
            "Start it with 'ollama serve', or set OLLAMA_HOST to where it listens.",
        ) from None
    except ValueError as error:
        # A port in OLLAMA_HOST that is none, or an answer that is no JSON or lacks what it must have.
        raise OllamaError(
            f"What answers as Ollama is none: {str(error).splitlines()[0]}.", "Check OLLAMA_HOST."
        ) from None
