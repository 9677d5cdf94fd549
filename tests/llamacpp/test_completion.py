from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xlm_llamacpp.completion import complete
from xlm_llamacpp.process import ServerProcess, start
from xlm_plugin.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.backend import LaunchSpec


@pytest.fixture
def server(spec: LaunchSpec) -> Iterator[ServerProcess]:
    with start(spec) as server:
        yield server


def test_a_completion_has_text_ids_logprobs_and_speeds(server: ServerProcess) -> None:
    completion = server.complete("Hello", 3)
    assert completion.text == " a b c"
    assert completion.tokens == (11, 12, 13)
    assert completion.logprobs == (-0.5, -0.5, -0.5)
    assert completion.prompt_tokens == 5
    assert (completion.prefill_tokens_per_s, completion.decode_tokens_per_s) == (100, 50)


def test_a_streamed_completion_passes_its_text_on_as_it_comes(server: ServerProcess) -> None:
    heard: list[str] = []
    assert server.complete("Hello", 3, on_text=heard.append) == server.complete("Hello", 3)
    assert heard == [" a", " b", " c"]


def test_a_chat_prompt_goes_through_the_models_template(server: ServerProcess) -> None:
    assert server.complete("Hello", 1, chat=True).prompt_tokens == len("<user>Hello</user>")


@pytest.mark.parametrize("stream", [False, True])
def test_a_refused_prompt_is_told_in_the_engines_words(server: ServerProcess, stream: bool) -> None:
    with pytest.raises(EngineError, match="refused the prompt: the prompt is longer than the context"):
        server.complete("x" * 101, 1, on_text=print if stream else None)


def test_a_prompt_that_is_not_utf_8_is_refused(server: ServerProcess) -> None:
    with pytest.raises(EngineError, match="not UTF-8"):
        server.complete("a\udcff", 1)


@pytest.mark.parametrize(
    ("fault", "message"), [("cut", "middle of its answer"), ("refuse-stream", "no more room")]
)
def test_a_stream_that_breaks_off_is_an_error(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch, fault: str, message: str
) -> None:
    monkeypatch.setenv("FAKE", fault)
    with start(spec) as server, pytest.raises(EngineError, match=message):
        complete(server.url, "Hello", 1, on_text=len)


def test_an_engine_that_is_not_there_is_told() -> None:
    with pytest.raises(EngineError, match="does not answer"):
        complete("http://127.0.0.1:9", "Hello", 1)
