"""Greedy completions from llama-server's own ``/completion`` endpoint, with ids and log-probabilities."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from xlm_plugin.backend import Completion
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx


class EngineLostError(EngineError):
    """The connection to the engine broke."""


def complete(
    url: str,
    prompt: str,
    new_tokens: int,
    *,
    chat: bool = False,
    on_text: Callable[[str], None] | None = None,
) -> Completion:
    """Return the greedy continuation of ``prompt``, at most ``new_tokens`` long, from the server at ``url``.

    With ``chat`` the prompt is one user message, put through the model's chat template. Raises
    EngineError when the server fails or refuses (a prompt that is longer than the context),
    and EngineLostError when the connection breaks.
    """
    import httpx

    try:
        prompt.encode()
    except UnicodeEncodeError:
        raise EngineError("The prompt is not UTF-8.") from None
    try:
        # A step of a large model on a slow link has no upper bound worth naming.
        with httpx.Client(base_url=url, timeout=httpx.Timeout(10, read=None), trust_env=False) as client:
            if chat:
                prompt = _apply_template(client, prompt)
            request = {
                "prompt": prompt,
                "n_predict": new_tokens,
                "temperature": 0,
                "n_probs": 1,
                "cache_prompt": False,
                "return_tokens": True,
            }
            return _stream(client, request, on_text) if on_text else _once(client, request)
    except httpx.HTTPError as error:
        raise EngineLostError(f"The engine at {url} does not answer: {error}.") from None
    except (KeyError, TypeError, ValueError) as error:
        raise EngineError(f"The engine's answer cannot be read: {error!r}.") from None


def _apply_template(client: httpx.Client, message: str) -> str:
    response = client.post("/apply-template", json={"messages": [{"role": "user", "content": message}]})
    _accept(response)
    return str(response.json()["prompt"])


def _once(client: httpx.Client, request: dict[str, Any]) -> Completion:
    response = client.post("/completion", json=request)
    _accept(response)
    answer = response.json()
    return _completion([answer], answer)


def _stream(client: httpx.Client, request: dict[str, Any], on_text: Callable[[str], None]) -> Completion:
    parts: list[dict[str, Any]] = []
    with client.stream("POST", "/completion", json={**request, "stream": True}) as response:
        if response.is_error:
            response.read()
        _accept(response)
        for line in response.iter_lines():
            if not line.startswith("data:"):
                continue
            part = json.loads(line.removeprefix("data:"))
            if "error" in part:
                raise EngineError(_refusal(line.removeprefix("data:")))
            parts.append(part)
            if part["content"]:
                on_text(part["content"])
    if not parts or not parts[-1]["stop"]:
        raise EngineLostError("The engine ended in the middle of its answer.")
    return _completion(parts, parts[-1])


def _accept(response: httpx.Response) -> None:
    if response.is_error:
        raise EngineError(_refusal(response.text))


def _refusal(text: str) -> str:
    try:
        reason = json.loads(text)["error"]["message"]
    except (KeyError, TypeError, ValueError):
        reason = text.strip() or "no reason given"
    return f"The engine refused the prompt: {reason.rstrip('.')}."


def _completion(parts: list[dict[str, Any]], last: dict[str, Any]) -> Completion:
    chosen = [token for part in parts for token in part.get("completion_probabilities", ())]
    timings = last["timings"]
    return Completion(
        text="".join(part["content"] for part in parts),
        tokens=tuple(token for part in parts for token in part["tokens"]),
        logprobs=tuple(float(token["logprob"]) for token in chosen),
        prompt_tokens=last["tokens_evaluated"],
        # A rate over no time is null.
        prefill_tokens_per_s=timings["prompt_per_second"] or 0.0,
        decode_tokens_per_s=timings["predicted_per_second"] or 0.0,
    )
