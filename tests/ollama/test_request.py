from __future__ import annotations

from pathlib import Path

import pytest

from xlm_ollama.option import Option, OptionError, write_option
from xlm_ollama.request import StartContext, StartRequest
from xlm_plugin.errors import UsageError

# What Ollama gives every start, in its own order (llm/llama_server.go).
ALWAYS = [
    *(
        "--model",
        "/models/blobs/sha256-1",
        "--port",
        "4242",
        "--host",
        "127.0.0.1",
        "--no-webui",
        "--offline",
    ),
    *("-c", "8192", "-np", "2", "--log-verbosity", "4", "--no-log-prefix", "--no-log-timestamps"),
]


def start(*more: str) -> StartRequest:
    return StartRequest.parse([*ALWAYS, *more])


@pytest.fixture
def option_file(tmp_path: Path) -> str:
    write_option(Option(1 << 30), "llama", tmp_path / "option")
    return str(tmp_path / "option")


def test_the_context_is_what_ollama_asks_for() -> None:
    assert start().context == StartContext(8192, 2)
    asked = start(
        *(
            "--cache-type-k",
            "q8_0",
            "--cache-type-v",
            "q8_0",
            "--flash-attn",
            "off",
            "-b",
            "256",
            "-ub",
            "256",
        )
    )
    assert asked.context == StartContext(8192, 2, 256, "q8_0", "q8_0", flash_attention=False)


def test_the_last_option_counts_and_other_adapters_are_the_models_own(
    tmp_path: Path, option_file: str
) -> None:
    write_option(Option(2 << 30), "llama", tmp_path / "later")
    request = start("--lora", option_file, "--lora", "/models/mine", "--lora", str(tmp_path / "later"))
    assert request.option == Option(2 << 30)
    assert request.adapters == (Path("/models/mine"),)


def test_a_planned_start_is_ollamas_own_without_option_and_placement(option_file: str) -> None:
    request = start(
        *("--no-jinja", "--chat-template", "chatml", "--lora", "/models/mine", "--lora", option_file),
        *("--load-mode", "none", "--flash-attn", "auto", "-b", "256", "-ub", "256", "-ngl", "20", "-t", "4"),
        *("--split-mode", "none", "--main-gpu", "1", "--context-shift", "--keep", "4"),
    )
    assert request.planned() == [
        *ALWAYS,
        *("--no-jinja", "--chat-template", "chatml", "--lora", "/models/mine", "--load-mode", "none"),
        *("-t", "4", "--context-shift", "--keep", "4"),
        *("--device", "XLM0", "--n-gpu-layers", "all", "--fit", "off"),
        *("--batch-size", "256", "--ubatch-size", "256", "--flash-attn", "on"),
    ]


@pytest.mark.parametrize("given", [["--no-mmproj-offload"], []])
def test_a_projector_stays_on_the_cpu(given: list[str]) -> None:
    planned = start("--mmproj", "/models/eyes", *given).planned()
    assert planned.count("--no-mmproj-offload") == 1


@pytest.mark.parametrize(
    "arguments",
    [["--spec-type", "draft-mtp"], ["--lora"], ["surprise"], ["-ot", "exps=CPU"]],
)
def test_a_start_with_anything_unknown_is_refused(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match="in a way that this xlm does not know"):
        start(*arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-c", "many"], "gives -c the value 'many', which is not a number from 1 on"),
        (["-ub", "0"], "gives -ub the value '0'"),
        (["--cache-type-k", "q2_k"], "a cache of type 'q2_k', which xlm does not know"),
    ],
)
def test_a_context_that_is_none_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        _ = start(*arguments).context


def test_a_start_without_an_option_is_refused() -> None:
    with pytest.raises(OptionError, match="None of the model's adapters is an option"):
        _ = start("--lora", "/models/mine").option
