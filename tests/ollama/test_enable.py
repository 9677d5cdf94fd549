"""The real Ollama client against a server with Ollama's API shapes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import ollama
import pytest

from tests.ollama.fake_ollama import LAYER, ModelStore
from xlm_ollama import plugin
from xlm_ollama.option import Option, is_option, read_option, write_option
from xlm_plugin.hookspecs import hookimpl
from xlm_plugin.testing import fake_device, fake_machine
from xlm_plugin.units import GIB, MIB

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    from xlm_plugin.machine.document import Machine

    Run = Callable[..., Result]


class OneDevice:
    """A machine with one small device."""

    @hookimpl
    def xlm_describe_machine(self) -> Machine:
        return fake_machine(fake_device())


class NoDevice:
    """A machine without a device."""

    @hookimpl
    def xlm_describe_machine(self) -> Machine:
        return fake_machine(accelerator=False)


@pytest.fixture
def xlm(invoke: Run) -> Run:
    def run(*arguments: str, machine: object = None) -> Result:
        from xlm_hooks import plugin as hooks

        return invoke("ollama", *arguments, plugins=(hooks, plugin, machine or OneDevice()))

    return run


def options(store: ModelStore, name: str) -> list[Option]:
    paths = [store.blob(layer["digest"]) for layer in store.layers(name) or ()]
    return [read_option(path) for path in paths if is_option(path)]


def test_an_enabled_model_is_a_new_one_with_an_option(server: ModelStore, xlm: Run) -> None:
    before = server.layers("tiny")
    result = xlm("enable", "tiny", "--vram", "1GiB", "--objective", "tps", "--priority", "2")
    assert result.exit_code == 0, result.output
    assert "5 of 5 shards stay in VRAM with a context of 4096 tokens" in result.output
    assert "ollama run tiny:latest-xlm" in result.output
    assert options(server, "tiny:latest-xlm") == [Option(GIB, "tps", 2, base="tiny:latest")]
    assert server.layers("tiny") == before


def test_a_model_keeps_its_own_adapter_projector_and_parameters(server: ModelStore, xlm: Run) -> None:
    own = server.layers("someone/rich:7b")
    assert own is not None
    assert xlm("enable", "someone/rich:7b", "--as", "mine", "--vram", "1GiB").exit_code == 0
    made = server.layers("mine")
    assert made is not None
    assert [layer for layer in made if layer in own] == own
    assert len(made) == len(own) + 1


def test_another_budget_is_another_option_of_the_same_model(server: ModelStore, xlm: Run) -> None:
    xlm("enable", "tiny", "--vram", "1GiB")
    first = server.layers("tiny:latest-xlm")
    xlm("enable", "tiny", "--vram", "2GiB")
    assert options(server, "tiny:latest-xlm") == [Option(2 * GIB, base="tiny:latest")]
    assert server.layers("tiny:latest-xlm") != first


def test_two_models_of_one_file_have_their_own_options(server: ModelStore, xlm: Run) -> None:
    xlm("enable", "tiny", "--as", "quick", "--vram", "1GiB")
    xlm("enable", "tiny", "--as", "small", "--vram", "500MiB")
    assert [option.budget_bytes for name in ("quick", "small") for option in options(server, name)] == [
        GIB,
        500 * MIB,
    ]


def test_the_option_survives_a_copy_and_a_round_trip_by_modelfile(server: ModelStore, xlm: Run) -> None:
    xlm("enable", "someone/rich:7b", "--as", "mine", "--vram", "1GiB")
    client = ollama.Client()
    client.copy("mine", "copied")
    assert server.layers("copied") == server.layers("mine")

    modelfile = client.show("mine").modelfile
    assert modelfile is not None
    paths: dict[str, list[str]] = {"FROM": [], "ADAPTER": []}
    for line in modelfile.splitlines():
        word, _, path = line.partition(" ")
        paths.get(word, []).append(path)
    # What 'ollama create' makes of these lines.
    files, adapters = ({path: client.create_blob(path) for path in found} for found in paths.values())
    client.create("again", files=files, adapters=adapters)
    assert options(server, "again") == options(server, "mine")
    kinds = {f"{LAYER}{kind}" for kind in ("model", "projector", "adapter")}
    assert {layer["digest"] for layer in server.layers("again") or ()} == {
        layer["digest"] for layer in server.layers("mine") or () if layer["mediaType"] in kinds
    }


def test_a_context_is_planned_at_once_and_given_to_the_model(
    server: ModelStore, xlm: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XLM_CACHE", str(tmp_path / "cache"))
    assert xlm("enable", "tiny", "--vram", "1GiB", "--ctx", "512").exit_code == 0
    layers = server.layers("tiny:latest-xlm")
    assert layers is not None
    assert server.parameters(layers) == {"num_ctx": 512, "num_batch": 512}
    assert len(list((tmp_path / "cache" / "ollama" / "plans").glob("*.json"))) == 1


def test_a_budget_that_the_context_alone_exceeds_is_refused_and_nothing_is_made(
    server: ModelStore, xlm: Run
) -> None:
    result = xlm("enable", "tiny", "--vram", "1MiB")
    assert result.exit_code == 3
    assert "With a context of 4096 tokens:" in result.output
    assert server.layers("tiny:latest-xlm") is None


def test_without_an_accelerator_the_model_is_made_with_a_remark(server: ModelStore, xlm: Run) -> None:
    result = xlm("enable", "tiny", "--vram", "1GiB", machine=NoDevice())
    assert result.exit_code == 0
    assert "There is no accelerator here" in result.output
    assert server.layers("tiny:latest-xlm")


@pytest.mark.usefixtures("server")
def test_what_is_free_now_does_not_count_against_a_budget(xlm: Run) -> None:
    class BusyDevice:
        @hookimpl
        def xlm_describe_machine(self) -> Machine:
            return fake_machine(fake_device(free_bytes=MIB))

    assert xlm("enable", "tiny", "--vram", "1GiB", machine=BusyDevice()).exit_code == 0


@pytest.mark.usefixtures("server")
def test_a_budget_beyond_the_device_is_told(xlm: Run) -> None:
    result = xlm("enable", "tiny", "--vram", "9GiB")
    assert result.exit_code == 0
    assert "FAKE0 has 8.00 GiB: the budget is that." in result.output


@pytest.mark.usefixtures("server")
def test_a_model_with_an_option_is_not_enabled_again(xlm: Run) -> None:
    xlm("enable", "tiny", "--vram", "1GiB")
    result = xlm("enable", "tiny:latest-xlm", "--vram", "2GiB")
    assert result.exit_code == 1
    assert "has an option already" in result.output


def test_no_other_model_is_overwritten(server: ModelStore, xlm: Run) -> None:
    before = server.layers("someone/rich:7b")
    result = xlm("enable", "tiny", "--as", "someone/rich:7b", "--vram", "1GiB")
    assert result.exit_code == 1
    assert "Choose another with --as." in result.output
    assert server.layers("someone/rich:7b") == before


@pytest.mark.usefixtures("server")
def test_the_list_has_the_enabled_models_alone(xlm: Run) -> None:
    assert "No model is enabled yet" in xlm("list").output
    xlm("enable", "tiny", "--vram", "1GiB")
    shown = xlm("list").output
    assert "tiny:latest-xlm" in shown
    assert "1.00 GiB, e2e" in shown
    assert "rich" not in shown


@pytest.mark.parametrize("name", ["tiny", "tiny:latest-xlm"])
def test_disabling_removes_the_enabled_model_alone(server: ModelStore, xlm: Run, name: str) -> None:
    before = server.names()
    xlm("enable", "tiny", "--vram", "1GiB")
    assert xlm("disable", name).exit_code == 0
    assert server.names() == before


def test_what_has_no_option_is_not_removed(server: ModelStore, xlm: Run) -> None:
    result = xlm("disable", "someone/rich:7b")
    assert result.exit_code == 1
    assert "has no option" in result.output
    assert server.layers("someone/rich:7b")


def with_option(store: ModelStore, content: bytes) -> None:
    layers = store.layers("tiny")
    assert layers is not None
    store.write("mine", [*layers, store.add_layer("adapter", content)])


def test_a_model_of_a_modelfile_is_not_removed(server: ModelStore, xlm: Run, tmp_path: Path) -> None:
    write_option(Option(GIB), "llama", tmp_path / "xlm.gguf")
    with_option(server, (tmp_path / "xlm.gguf").read_bytes())
    result = xlm("disable", "mine")
    assert result.exit_code == 1
    assert "was made from a Modelfile" in result.output
    assert server.layers("mine")


def test_a_damaged_option_is_listed_and_not_removed(server: ModelStore, xlm: Run, tmp_path: Path) -> None:
    write_option(Option(GIB), "llama", tmp_path / "xlm.gguf")
    with_option(server, (tmp_path / "xlm.gguf").read_bytes()[:-20])
    assert "damaged" in xlm("list").output
    result = xlm("disable", "mine")
    assert result.exit_code == 1
    assert "Run 'ollama rm mine:latest'." in result.output
    assert server.layers("mine")


@pytest.mark.usefixtures("server")
def test_an_unknown_model_is_said_in_a_sentence(xlm: Run) -> None:
    result = xlm("enable", "tinny", "--vram", "1GiB")
    assert result.exit_code == 1
    assert "Ollama has no model 'tinny:latest'." in result.output


def test_a_server_that_is_down_is_said_in_a_sentence(xlm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    result = xlm("list")
    assert result.exit_code == 1
    assert "The Ollama server cannot be reached" in result.output


def test_a_missing_client_is_said_in_a_sentence(xlm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ollama", None)
    result = xlm("list")
    assert result.exit_code == 1
    assert "pip install 'xlm-plugin[ollama]'" in result.output
