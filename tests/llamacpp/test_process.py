from __future__ import annotations

import dataclasses
import json
import multiprocessing
import os
import socket
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from xlm_llamacpp import runtime
from xlm_llamacpp.control import DeviceControl
from xlm_llamacpp.process import start
from xlm_plugin.errors import EngineError
from xlm_plugin.testing import tiny_model, tiny_plan

if TYPE_CHECKING:
    from pathlib import Path

    from xlm_plugin.backend import LaunchSpec


def faking(spec: LaunchSpec, fault: str) -> LaunchSpec:
    return dataclasses.replace(spec, environment={**spec.environment, "FAKE": fault})


def directories(root: Path) -> list[Path]:
    return list(root.glob("xlm-*/*"))


def test_a_started_engine_answers_and_can_be_controlled(spec: LaunchSpec) -> None:
    with start(spec) as engine:
        assert engine.complete("Hello", 2).tokens == (11, 12)
        assert spec.socket is not None
        assert DeviceControl(spec.socket).set_budget(77).budget_bytes == 77


def test_leaving_the_context_ends_the_process_and_removes_its_directory(
    spec: LaunchSpec, runtime_root: Path
) -> None:
    with start(spec) as engine:
        assert directories(runtime_root)
    assert not psutil.pid_exists(engine.pid)
    assert not directories(runtime_root)


def test_the_runtime_directory_is_private(spec: LaunchSpec, runtime_root: Path) -> None:
    with start(spec):
        assert [path.stat().st_mode & 0o777 for path in runtime_root.glob("xlm-*")] == [0o700]
        assert [path.stat().st_mode & 0o777 for path in directories(runtime_root)] == [0o700]


def test_a_process_that_ignores_termination_is_killed(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xlm_llamacpp.process._STOP_SECONDS", 0.1)
    with start(faking(spec, "stubborn")) as engine:
        pass
    assert not psutil.pid_exists(engine.pid)
    assert engine.wait() == 0


def test_a_second_ctrl_c_kills_what_does_not_go(
    spec: LaunchSpec, runtime_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> bool:
        raise KeyboardInterrupt

    engine = start(faking(spec, "stubborn"))
    monkeypatch.setattr(engine, "_ends_within", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.stop()
    assert not psutil.pid_exists(engine.pid)
    assert not directories(runtime_root)


def test_the_devices_own_sentence_is_shown_when_it_refuses(spec: LaunchSpec, runtime_root: Path) -> None:
    with pytest.raises(EngineError) as caught:
        start(faking(spec, "refuse"))
    assert str(caught.value) == "The device refused: the plan needs 5 bytes more than the device has."
    assert not directories(runtime_root)


def test_the_last_lines_are_shown_when_the_engine_dies_while_loading(
    spec: LaunchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with pytest.raises(EngineError) as caught:
        start(faking(spec, "crash"))
    assert "ended with exit code 7 while it loaded the model" in caught.value.message
    assert caught.value.message.endswith("\n  line 18\n  line 19")
    log = caught.value.hint.split()[-1].rstrip(".")
    assert "line 0\nline 1\n" in (tmp_path / log).read_text()


def test_a_log_that_cannot_be_kept_does_not_hide_the_last_lines(
    spec: LaunchSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(EngineError, match="line 19") as caught:
        start(faking(spec, "crash"))
    assert not caught.value.hint


def test_a_signal_is_called_by_its_name(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with pytest.raises(EngineError, match="was ended by SIGKILL"):
        start(faking(spec, "killed"))


def test_what_the_device_says_while_the_engine_answers_is_the_reason(spec: LaunchSpec) -> None:
    with start(faking(spec, "fail")) as engine, pytest.raises(EngineError) as caught:
        engine.complete("Hello", 1)
    assert str(caught.value) == "The device refused: the device has no room for 3.00 MiB."


def test_an_engine_that_dies_while_it_answers_is_told(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with (
        start(faking(spec, "lose")) as engine,
        pytest.raises(EngineError, match="exit code 3 while it answered"),
    ):
        engine.complete("Hello", 1)


def test_an_engine_that_dies_while_it_serves_is_told(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with start(spec) as engine:
        psutil.Process(engine.pid).kill()
        with pytest.raises(EngineError, match="was ended by SIGKILL while it served"):
            engine.wait()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_an_engine_ends_with_the_process_that_started_it_even_if_that_is_killed(spec: LaunchSpec) -> None:
    parent, child = multiprocessing.get_context("fork").Pipe()

    def start_and_wait() -> None:
        child.send(start(spec).pid)
        time.sleep(60)

    owner = multiprocessing.get_context("fork").Process(target=start_and_wait)
    owner.start()
    engine = psutil.Process(parent.recv())
    owner.kill()
    owner.join()
    until = time.monotonic() + 10
    while engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_missing_program_is_told_and_leaves_nothing(spec: LaunchSpec, runtime_root: Path) -> None:
    with pytest.raises(EngineError, match="No such file"):
        start(dataclasses.replace(spec, command=("/nowhere/llama-server",)))
    assert not directories(runtime_root)


def test_a_plan_that_cannot_be_written_is_told_and_leaves_nothing(
    spec: LaunchSpec, runtime_root: Path
) -> None:
    assert spec.socket is not None
    nowhere = spec.socket.parent / "nowhere" / "plan.json"
    with pytest.raises(EngineError, match="Nothing can be written to"):
        start(dataclasses.replace(spec, files={nowhere: ""}))
    assert not directories(runtime_root)


def test_a_port_that_is_bound_but_not_listened_at_is_taken_too(spec: LaunchSpec) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"Port {port} is taken"):
            start(dataclasses.replace(spec, url=f"http://127.0.0.1:{port}"))


def test_an_address_of_another_machine_is_told(spec: LaunchSpec) -> None:
    with pytest.raises(EngineError, match=r"Nothing can listen at http://192\.0\.2\.1:80"):
        start(dataclasses.replace(spec, url="http://192.0.2.1:80"))


def test_a_taken_port_is_told(spec: LaunchSpec) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"Port {port} is taken"):
            start(dataclasses.replace(spec, url=f"http://127.0.0.1:{port}"))


def test_the_engine_does_not_inherit_the_settings_of_another_device(
    spec: LaunchSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XLM_EMULATED", "memory_bytes=1")
    monkeypatch.setenv("XLM_TEST_CORRUPT", "a.weight")
    monkeypatch.setenv("LLAMA_ARG_OVERRIDE_TENSOR", "blk=CPU")
    with start(spec) as engine:
        environment = psutil.Process(engine.pid).environ()
    assert "LLAMA_ARG_OVERRIDE_TENSOR" not in environment
    assert "XLM_EMULATED" not in environment
    assert environment["XLM_TEST_CORRUPT"] == "a.weight"


def test_running_engines_are_found_by_process_id_and_by_name(spec: LaunchSpec) -> None:
    with start(spec) as engine:
        assert runtime.find_running(str(engine.pid)).socket == spec.socket
        assert runtime.find_running("tiny").record.pid == engine.pid
        with pytest.raises(EngineError, match=r"No running engine is called 'x'.*\(tiny\)"):
            runtime.find_running("x")
    with pytest.raises(EngineError, match="xlm serve"):
        runtime.find_running("tiny")


def test_a_record_that_makes_no_sense_is_no_engine(spec: LaunchSpec, runtime_root: Path) -> None:
    with start(spec) as engine:
        second = runtime_root / f"xlm-{os.getuid()}" / "second"
        second.mkdir()
        record = {"pid": "x", "started": 0, "name": "", "url": "", "device": "", "emulated": False}
        (second / runtime.RECORD).write_text(json.dumps(record))
        assert [found.record.pid for found in runtime.running_engines()] == [engine.pid]


def test_engines_of_one_name_have_to_be_told_apart(spec: LaunchSpec, runtime_root: Path) -> None:
    with start(spec) as engine:
        second = runtime_root / f"xlm-{os.getuid()}" / "second"
        second.mkdir()
        (second / runtime.PLAN).write_text(tiny_plan(tiny_model()).to_json())
        runtime.write_record(second, engine.pid, engine.url)
        with pytest.raises(EngineError, match="Several engines"):
            runtime.find_running("tiny")


def test_directories_of_dead_engines_are_removed_at_the_next_start(
    spec: LaunchSpec, runtime_root: Path
) -> None:
    root = runtime_root / f"xlm-{os.getuid()}"
    root.mkdir(mode=0o700)
    dead, starting, abandoned = root / "dead", root / "starting", root / "abandoned"
    for directory in (dead, starting, abandoned):
        directory.mkdir()
    (dead / runtime.RECORD).write_text(
        '{"pid": 1, "started": 0, "name": "tiny", "model": "tiny", "url": "http://x", "device": "FAKE0", '
        '"emulated": false}'
    )
    os.utime(abandoned, (0, 0))
    with start(spec):
        assert not dead.exists()
        assert not abandoned.exists()
        assert starting.exists()


def test_a_runtime_root_that_others_can_open_is_refused(spec: LaunchSpec, runtime_root: Path) -> None:
    (runtime_root / f"xlm-{os.getuid()}").mkdir(mode=0o755)
    with pytest.raises(EngineError, match="not private"):
        start(spec)


def test_a_runtime_root_that_cannot_be_made_is_told(spec: LaunchSpec, runtime_root: Path) -> None:
    (runtime_root / f"xlm-{os.getuid()}").touch()
    with pytest.raises(EngineError, match="cannot be made"):
        start(spec)


def test_the_sessions_own_runtime_directory_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert runtime.new_directory().parent == tmp_path / "xlm"


def test_a_session_directory_too_long_for_a_socket_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert len(str(runtime.new_directory() / runtime.SOCKET)) <= 107
