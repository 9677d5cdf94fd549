"""GGUF containers: single files, split ones, and every way they can be broken."""

from __future__ import annotations

import os
import struct
import sys
from typing import TYPE_CHECKING

import pytest
from gguf import GGUFEndian

from xlm_plugin.errors import ModelError
from xlm_plugin.model import read_model

from .described import Described, write_described_gguf
from .tiny import tiny

if TYPE_CHECKING:
    from pathlib import Path

HUGE = 2**60


def _write(folder: Path, content: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(content)
    return path


def _header(*, version: int = 3, tensors: int = 0, keys: int = 0, rest: bytes = b"") -> bytes:
    return struct.pack("<4sIQQ", b"GGUF", version, tensors, keys) + rest


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _key(name: str, type_: int, value: bytes) -> bytes:
    return _text(name) + struct.pack("<I", type_) + value


def _row(name: str, shape: tuple[int, ...], type_: int = 0, offset: int = 0) -> bytes:
    return _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, type_, offset)


def _fault(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read_model(path)
    assert caught.value.message.endswith(".")
    assert "\n" not in caught.value.message
    return caught.value.message


def test_the_models_name_is_the_files_own(tmp_path: Path) -> None:
    model = tiny()
    named = Described({**model.hyperparameters, "general.name": "Tiny\x1b[31m"}, model.tensors)

    assert read_model(named.write(tmp_path / "model.gguf")).name == "Tiny[31m"
    assert read_model(model.write(tmp_path / "plain.gguf")).name == "plain"


def test_long_lists_and_texts_are_skipped_not_kept(tmp_path: Path) -> None:
    model = tiny()
    tokenizer = {
        "tokenizer.ggml.tokens": ["a", "bc", ""] * 2000,
        "tokenizer.ggml.scores": [0.5] * 5000,
        "tokenizer.chat_template": "x" * 100_000,
    }
    path = Described({**tokenizer, **model.hyperparameters}, model.tensors).write(tmp_path / "model.gguf")

    assert read_model(path).parameters == model.parameters


def test_file_bytes_are_what_the_file_takes_on_disk(tmp_path: Path) -> None:
    path = tiny().write(tmp_path / "model.gguf")
    graph = read_model(path)

    assert (graph.file_bytes, graph.files, graph.path) == (path.stat().st_size, (path,), path)


def test_a_scalar_tensor_has_one_weight(tmp_path: Path) -> None:
    model = tiny(extra=[("blk.0.layer_output_scale.weight", (), "F32")])

    assert read_model(model.write(tmp_path / "model.gguf")).parameters == model.parameters


@pytest.mark.parametrize("number", [1, 2, 3])
def test_c21_any_part_of_a_split_model_stands_for_all(tmp_path: Path, number: int) -> None:
    model = tiny()
    write_described_gguf(tmp_path / "model.gguf", model.hyperparameters, model.tensors, files=3)
    graph = read_model(tmp_path / f"model-{number:05d}-of-00003.gguf")

    assert graph.parameters == model.parameters
    assert [path.name for path in graph.files] == [f"model-{part:05d}-of-00003.gguf" for part in (1, 2, 3)]
    assert graph.file_bytes == sum(path.stat().st_size for path in graph.files)
    assert (graph.name, graph.path) == ("model", graph.files[0])


@pytest.mark.parametrize("missing", [1, 2])
def test_c21_a_missing_part_is_named(tmp_path: Path, missing: int) -> None:
    model = tiny()
    paths = write_described_gguf(tmp_path / "model.gguf", model.hyperparameters, model.tensors, files=3)
    paths[missing - 1].unlink()

    assert f"its part model-{missing:05d}-of-00003.gguf is missing" in _fault(paths[2])


def test_c21_a_part_under_another_name_is_refused(tmp_path: Path) -> None:
    model = tiny()
    paths = write_described_gguf(tmp_path / "model.gguf", model.hyperparameters, model.tensors, files=2)

    assert "its name does not say which" in _fault(paths[0].rename(tmp_path / "renamed.gguf"))


def test_c21_parts_in_the_wrong_order_are_refused(tmp_path: Path) -> None:
    model = tiny()
    first, second = write_described_gguf(
        tmp_path / "model.gguf", model.hyperparameters, model.tensors, files=2
    )
    first.rename(tmp_path / "kept")
    second.rename(first)
    (tmp_path / "kept").rename(second)

    assert "says that it is part 1 (from 0), and its name says 0" in _fault(first)


def test_c21_parts_of_different_models_are_refused(tmp_path: Path) -> None:
    for folder, layers in (("one", 2), ("two", 3)):
        (tmp_path / folder).mkdir()
        model = tiny(layers=layers)
        write_described_gguf(tmp_path / folder / "model.gguf", model.hyperparameters, model.tensors, files=2)
    (tmp_path / "two" / "model-00002-of-00002.gguf").replace(tmp_path / "one" / "model-00002-of-00002.gguf")

    assert "and should hold 21" in _fault(tmp_path / "one" / "model-00001-of-00002.gguf")


def test_parts_that_name_a_tensor_twice_are_refused(tmp_path: Path) -> None:
    model = tiny()
    paths = write_described_gguf(tmp_path / "model.gguf", model.hyperparameters, model.tensors, files=2)
    content = paths[1].read_bytes().replace(b"blk.1.attn_q.weight", b"blk.0.attn_q.weight")
    paths[1].write_bytes(content)

    assert "name a tensor twice" in _fault(paths[0])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert _fault(tmp_path / "no.gguf") == f"There is no file {tmp_path / 'no.gguf'}."


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    assert "is empty" in _fault(_write(tmp_path, b""))


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")

    assert "is not a file" in _fault(tmp_path / "model.gguf")


def test_a_path_through_a_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in _fault(_write(tmp_path, b"GGUF") / "model.gguf")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_refused(tmp_path: Path) -> None:
    path = tiny().write(tmp_path / "model.gguf")
    path.chmod(0)

    assert "may not be read" in _fault(path)


def test_permission_denied_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    path = tiny().write(tmp_path / "model.gguf")
    monkeypatch.setattr("pathlib.Path.open", refuse)

    assert _fault(path) == f"{path} may not be read by this user."


def test_a_file_that_cannot_be_mapped_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    path = tiny().write(tmp_path / "model.gguf")
    monkeypatch.setattr("mmap.mmap", refuse)

    assert "cannot be read: Cannot allocate memory" in _fault(path)


def test_a_wrong_magic_is_refused(tmp_path: Path) -> None:
    assert "is not a GGUF file" in _fault(_write(tmp_path, b"PK\x03\x04" + b"\0" * 64))


def test_a_big_endian_file_is_named_as_such(tmp_path: Path) -> None:
    model = tiny()
    write_described_gguf(
        tmp_path / "model.gguf", model.hyperparameters, model.tensors, endianess=GGUFEndian.BIG
    )

    assert "is a big-endian GGUF file" in _fault(tmp_path / "model.gguf")


@pytest.mark.parametrize("version", [0, 1, 4])
def test_an_unknown_version_is_refused(tmp_path: Path, version: int) -> None:
    assert f"is of GGUF version {version}" in _fault(_write(tmp_path, _header(version=version)))


def test_a_cut_body_is_refused(tmp_path: Path) -> None:
    path = tiny().write(tmp_path / "model.gguf")
    os.truncate(path, path.stat().st_size - 64)

    assert "is truncated: its tensors end at" in _fault(path)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"GG", "is truncated or damaged"),
        (_header()[:12], "is truncated or damaged"),
        (_header(tensors=HUGE), f"it says that it has {HUGE} tensors"),
        (_header(keys=HUGE), f"it says that it has {HUGE} keys"),
        (_header(tensors=1000), "is truncated or damaged"),
        (_header(keys=1, rest=struct.pack("<QIQ", HUGE, 4, 0)), "is truncated or damaged"),
        (_header(keys=1, rest=_key("a", 8, struct.pack("<Q", HUGE))), "is truncated or damaged"),
        (
            _header(keys=1, rest=_key("a", 9, struct.pack("<IQ", 8, HUGE))),
            f"it says that it has {HUGE} strings",
        ),
        (_header(keys=1, rest=_key("a", 9, struct.pack("<IQQ", 8, 1, HUGE))), "is truncated or damaged"),
        (
            _header(keys=1, rest=_key("a", 9, struct.pack("<IQQQ", 8, 2, 2**64 - 1, 0))),
            "is truncated or damaged",
        ),
        (_header(keys=1, rest=_key("a", 9, struct.pack("<IQ", 4, HUGE))), "is truncated or damaged"),
        (_header(keys=1, rest=_key("a", 9, struct.pack("<IQ", 9, 1))), "has an array of arrays"),
        (_header(keys=1, rest=_key("a", 99, b"")), "has a value of type 99"),
        (_header(keys=1, rest=_key("n" * 70_000, 4, b"\0" * 4)), "has a name of 70000 bytes"),
        (_header(keys=1, rest=struct.pack("<Q2sII", 2, b"\xff\xfe", 4, 0)), "has a name that is not UTF-8"),
        (_header(keys=2, rest=_key("a", 4, b"\0" * 4) * 2), "has the key 'a' twice"),
        (_header(tensors=1, rest=_row("t", (1,) * 5)), "gives tensor 't' 5 dimensions"),
        (_header(tensors=1, rest=_row("t", (32,), type_=999)), "gives tensor 't' the type 999"),
        (
            _header(tensors=1, rest=_row("t", (33, 2), type_=8)),
            "gives tensor 't' the shape [33, 2], which Q8_0",
        ),
        (_header(tensors=1, rest=_row("t", (32, 0))), "gives tensor 't' the shape [32, 0]"),
        (_header(tensors=1, rest=_row("t", (HUGE, HUGE))), "is truncated: its tensors end at"),
        (_header(tensors=1, rest=_row("t", (32,), offset=HUGE)), "is truncated: its tensors end at"),
        (_header(tensors=2, rest=_row("t", (1,)) * 2 + b"\0" * 64), "names a tensor twice"),
        (
            _header(keys=1, rest=_key("general.alignment", 4, struct.pack("<I", 24)) + b"\0" * 64),
            "has an alignment that is not a power of two: 24",
        ),
        (_header(), "holds no weights"),
        (_header(tensors=1, rest=_row("t", (1,)) + b"\0" * 64), "does not say which architecture it has"),
    ],
)
def test_damaged_headers_are_refused_without_believing_them(
    tmp_path: Path, content: bytes, sentence: str
) -> None:
    assert sentence in _fault(_write(tmp_path, content))
