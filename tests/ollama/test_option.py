from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from gguf import GGUFReader

from xlm_ollama.option import LARGEST_BYTES, Option, OptionError, is_option, read_option, write_option
from xlm_plugin.units import GIB

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, option: Option, architecture: str = "llama") -> Path:
    path = folder / "xlm.gguf"
    write_option(option, architecture, path)
    return path


@pytest.mark.parametrize(
    "option", [Option(), Option(6 * GIB, "tps", -3, base="registry.example/someone/qwen3:30b")]
)
def test_an_option_is_read_as_it_was_written(tmp_path: Path, option: Option) -> None:
    assert read_option(written(tmp_path, option)) == option


def test_an_option_is_an_adapter_without_tensors_of_under_a_kibibyte(tmp_path: Path) -> None:
    path = written(tmp_path, Option(base="m" * 200))
    reader = GGUFReader(path)
    assert reader.fields["general.type"].contents() == "adapter"
    assert not reader.tensors
    assert path.stat().st_size < LARGEST_BYTES


def test_equal_options_are_equal_bytes(tmp_path: Path) -> None:
    first = written(tmp_path, Option(GIB)).read_bytes()
    assert written(tmp_path, Option(GIB)).read_bytes() == first
    assert written(tmp_path, Option(2 * GIB)).read_bytes() != first


def test_the_architecture_has_llama_cpps_name(tmp_path: Path) -> None:
    reader = GGUFReader(written(tmp_path, Option(), "gptoss"))
    assert reader.fields["general.architecture"].contents() == "gpt-oss"


def test_a_damaged_option_is_still_told_from_other_adapters(tmp_path: Path) -> None:
    path = written(tmp_path, Option(GIB))
    path.write_bytes(path.read_bytes()[:-20])
    assert is_option(path)
    with pytest.raises(OptionError, match="is damaged"):
        read_option(path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (b"xlm.version", b"xlm.versiom", "is of version None; this xlm reads 1"),
        (b"e2e", b"e3e", "its keys have wrong values"),
    ],
)
def test_an_option_of_another_making_is_refused(
    tmp_path: Path, key: bytes, value: bytes, message: str
) -> None:
    path = written(tmp_path, Option())
    path.write_bytes(path.read_bytes().replace(key, value))
    with pytest.raises(OptionError, match=message):
        read_option(path)


def test_what_is_no_option_is_none(tmp_path: Path) -> None:
    large = tmp_path / "large.gguf"
    large.write_bytes(written(tmp_path, Option()).read_bytes() + bytes(LARGEST_BYTES))
    text = tmp_path / "text.gguf"
    text.write_text("xlm.version")
    assert not any(map(is_option, (large, text, tmp_path, tmp_path / "missing")))


def test_an_option_that_cannot_be_written_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"cannot be written to .*: No such file"):
        write_option(Option(), "llama", tmp_path / "missing" / "xlm.gguf")
