from __future__ import annotations

import errno
import multiprocessing
import shutil
import signal
from pathlib import Path

import pytest
from filelock import FileLock

from xlm_llamacpp.engine import InstalledEngine, ensure_device, ensure_engine, find_engine
from xlm_plugin.errors import EngineError, UsageError

from .fakes import FakeTool, Recorder


def built_targets(cmake: FakeTool) -> list[str]:
    return [call.partition("--target ")[2] for call in cmake.calls() if call.startswith("--build")]


def test_a_new_engine_is_fetched_built_and_joined_by_our_device(
    root: Path, cmake: FakeTool, progress: Recorder
) -> None:
    engine = ensure_engine(variant="cpu", progress=progress)
    (library,) = root.glob("native-*/libggml-xlm.so")
    assert engine == InstalledEngine(
        version="b10488",
        variant="cpu",
        root=root,
        server=root / "build" / "bin" / "llama-server",
        library=library,
        ggml_version="0.20.2",
    )
    assert engine.server.is_file()
    assert engine.library.is_file()
    assert built_targets(cmake) == ["llama-server llama-bench ggml-cpu", "ggml-xlm"]


def test_a_device_for_others_engines_is_built_without_an_engine(
    cmake: FakeTool, cache: Path, progress: Recorder
) -> None:
    library = ensure_device(progress=progress)
    assert library.is_file()
    assert progress.steps == ["Fetching llama.cpp b10488", "Building the xlm device"]
    assert built_targets(cmake) == ["ggml-xlm"]
    assert not list((cache / "engines").glob("*/src"))
    assert find_engine() is None
    assert ensure_device(progress=progress) == library
    assert built_targets(cmake) == ["ggml-xlm"]


def test_an_engines_own_device_serves_others_too(cmake: FakeTool) -> None:
    engine = ensure_engine()
    calls = cmake.calls()
    assert ensure_device() == engine.library
    assert cmake.calls() == calls


def test_the_steps_and_their_progress_are_shown(progress: Recorder) -> None:
    ensure_engine(progress=progress)
    assert progress.steps == [
        "Fetching llama.cpp b10488",
        "Building llama.cpp b10488 (cpu)",
        "Building the xlm device",
    ]
    assert progress.positions == [(1, 2), (2, 2)] * 2


def test_a_build_is_never_silent(capsys: pytest.CaptureFixture[str]) -> None:
    ensure_engine()
    assert "Building llama.cpp b10488 (cpu) ..." in capsys.readouterr().err


def test_percentages_of_make_are_progress_too(cmake: FakeTool, progress: Recorder) -> None:
    script = cmake.folder / "cmake"
    script.write_text(script.read_text().replace("[1/2]", "[ 50%]"))
    ensure_engine(progress=progress)
    assert progress.positions[0] == (50, 100)


def test_a_build_inside_the_build_is_not_progress(cmake: FakeTool, progress: Recorder) -> None:
    script = cmake.folder / "cmake"
    nested = "[3/9] Building shaders\\n[1/2] Building the generator\\n[4/9] Generating shaders"
    script.write_text(script.read_text().replace("[1/2] Building C object ggml.o", nested))
    ensure_engine(progress=progress)
    assert progress.positions[:2] == [(3, 9), (4, 9)]


def test_everything_said_is_in_the_log(root: Path) -> None:
    ensure_engine()
    log = (root / "build.log").read_text()
    assert "pip download" in log
    assert "[2/2] Linking ggml-xlm" in log


def test_a_finished_engine_is_returned_without_running_anything(cmake: FakeTool, progress: Recorder) -> None:
    first = ensure_engine()
    calls = cmake.calls()
    assert ensure_engine(progress=progress) == first
    assert cmake.calls() == calls
    assert not progress.steps


def test_an_engine_is_found_once_it_is_built() -> None:
    assert find_engine() is None
    engine = ensure_engine()
    assert find_engine() == engine
    assert find_engine("b10488", "cpu") == engine
    assert find_engine("b11434") is None
    assert find_engine(variant="cuda") is None


def test_the_most_capable_engine_is_found_first(cmake: FakeTool) -> None:
    (cmake.folder / "glslc").symlink_to(cmake.folder / "ninja")
    ensure_engine(variant="cpu")
    vulkan = ensure_engine(variant="vulkan")
    assert "ggml-vulkan" in built_targets(cmake)[2]
    assert find_engine() == ensure_engine() == vulkan


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(UsageError, match=r"no engine version 'b1'\. Known: b10488, b11434"):
        ensure_engine("b1")


def test_a_changed_device_is_rebuilt_without_the_engine(
    package: Path, cmake: FakeTool, progress: Recorder
) -> None:
    ensure_engine()
    (package / "native" / "device.cpp").write_text("int device;\n")
    assert find_engine() is None
    ensure_engine(progress=progress)
    assert progress.steps == ["Building the xlm device"]
    assert built_targets(cmake)[2:] == ["ggml-xlm"]


def test_two_versions_of_the_device_share_an_engine(
    package: Path, cmake: FakeTool, progress: Recorder
) -> None:
    first = ensure_engine()
    (package / "native" / "device.cpp").write_text("int device;\n")
    second = ensure_engine()
    calls = cmake.calls()
    assert first.library.is_file()
    assert find_engine() == second
    (package / "native" / "device.cpp").unlink()
    assert ensure_engine(progress=progress) == first
    assert cmake.calls() == calls


def test_a_finished_device_is_its_library_alone_so_that_a_cache_may_be_moved(root: Path) -> None:
    engine = ensure_engine()
    assert list(engine.library.parent.iterdir()) == [engine.library]
    assert not (root / "native.partial").exists()


def test_what_a_developer_built_in_the_devices_folder_changes_nothing(package: Path) -> None:
    engine = ensure_engine()
    (package / "native" / "build").mkdir()
    (package / "native" / "build" / "device.cpp").touch()
    assert find_engine() == engine


def test_a_lost_program_is_built_again(progress: Recorder) -> None:
    ensure_engine().server.unlink()
    assert ensure_engine(progress=progress).server.is_file()
    assert progress.steps == ["Building llama.cpp b10488 (cpu)"]


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_killed_build_goes_on_where_it_stopped(root: Path, cmake: FakeTool, progress: Recorder) -> None:
    cmake.behave("killed")
    process = multiprocessing.get_context("fork").Process(target=ensure_engine)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert find_engine() is None
    cmake.behave("")
    marker = root / "build" / "object.o"
    marker.touch()
    ensure_engine(progress=progress)
    assert progress.steps[0] == "Building llama.cpp b10488 (cpu)"
    assert marker.exists()


def test_an_interrupt_ends_the_compilers(cmake: FakeTool) -> None:
    class Interrupting(Recorder):
        def advance(self, done: int, total: int) -> None:  # noqa: ARG002
            raise KeyboardInterrupt

    cmake.behave("endless")
    with pytest.raises(KeyboardInterrupt):
        ensure_engine(progress=Interrupting())


def test_a_half_unpacked_source_is_unpacked_again(root: Path) -> None:
    (root / "src.partial" / "stale").mkdir(parents=True)
    ensure_engine()
    assert not (root / "src.partial").exists()
    assert not (root / "src" / "stale").exists()


def test_another_source_starts_the_build_over(root: Path, package: Path) -> None:
    ensure_engine()
    stale = root / "build" / "object.o"
    stale.touch()
    (package / "patches").mkdir()
    (package / "patches" / "answer.patch").write_text(PATCH)
    ensure_engine()
    assert not stale.exists()


PATCH = """\
--- a/src/llama.cpp
+++ b/src/llama.cpp
@@ -1 +1 @@
-int answer = 41;
+int answer = 42;
"""


def test_a_changed_generator_starts_the_build_over(root: Path, cmake: FakeTool) -> None:
    cmake.behave("compiler error")
    with pytest.raises(EngineError):
        ensure_engine()
    stale = root / "build" / "object.o"
    stale.touch()
    cmake.behave("")
    (cmake.folder / "ninja").rename(cmake.folder / "make")
    ensure_engine()
    assert "-G Unix Makefiles" in cmake.calls()[-2]
    assert not stale.exists()


def test_a_second_build_waits_for_the_first(cache: Path) -> None:
    (cache / "engines").mkdir(parents=True)
    lock = FileLock(cache / "engines" / ".lock")
    lock.acquire()

    class Waiting(Recorder):
        def note(self, text: str) -> None:
            super().note(text)
            lock.release()

    progress = Waiting()
    ensure_engine(progress=progress)
    assert progress.notes == ["Another build is running; waiting for it ..."]


def test_a_build_that_finished_while_we_waited_is_not_repeated(cache: Path, cmake: FakeTool) -> None:
    (cache / "engines").mkdir(parents=True)
    lock = FileLock(cache / "engines" / ".lock")
    lock.acquire()

    class Waiting(Recorder):
        def note(self, text: str) -> None:
            super().note(text)
            lock.release()
            ensure_engine()

    progress = Waiting()
    ensure_engine(progress=progress)
    assert built_targets(cmake) == ["llama-server llama-bench ggml-cpu", "ggml-xlm"]
    assert not progress.steps


@pytest.mark.parametrize(
    ("behaviour", "sentence"),
    [
        (
            "compiler error",
            r"Compiling b10488-cpu failed: /src/ggml\.c:7:1: error: expected ';' before 'return'\.",
        ),
        ("configure error", r"Configuring b10488-cpu failed: Could NOT find Vulkan \(missing: glslc\)\."),
        ("memory short", r"Compiling b10488-cpu failed: memory ran out\."),
        ("disk full", r"The disk with .* is full\."),
    ],
)
def test_a_failed_step_is_one_sentence_and_the_log(
    root: Path, cmake: FakeTool, behaviour: str, sentence: str
) -> None:
    cmake.behave(behaviour)
    with pytest.raises(EngineError, match=sentence) as failure:
        ensure_engine()
    assert failure.value.hint.endswith(f"The log: {root / 'build.log'}.")
    assert find_engine() is None


def test_a_failed_device_build_keeps_the_engine(cmake: FakeTool, package: Path, progress: Recorder) -> None:
    ensure_engine()
    (package / "native" / "device.cpp").write_text("int device\n")
    cmake.behave("compiler error")
    with pytest.raises(EngineError, match="expected ';'"):
        ensure_engine()
    cmake.behave("")
    ensure_engine(progress=progress)
    assert progress.steps == ["Building the xlm device"]


def test_too_little_disk_is_told_before_the_build(monkeypatch: pytest.MonkeyPatch, cmake: FakeTool) -> None:
    usage = type(shutil.disk_usage("/"))(2**40, 2**40, 2**20)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage)
    with pytest.raises(EngineError, match=r"takes 512\.00 MiB of disk, but .* has only 1\.00 MiB left"):
        ensure_engine()
    assert not cmake.calls()


def test_a_cache_that_cannot_be_made_is_one_sentence(cache: Path) -> None:
    cache.write_text("a file in the way")
    with pytest.raises(EngineError, match=r"The cache .* cannot be used: .*Set XLM_CACHE"):
        ensure_engine()


def test_a_cache_without_write_permission_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def mkdir(path: Path, **_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", mkdir)
    with pytest.raises(EngineError, match=r"The cache .* cannot be used: .*engines: Permission denied\."):
        ensure_engine()


def test_a_disk_that_fills_up_while_unpacking_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def copyfileobj(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", copyfileobj)
    with pytest.raises(EngineError, match=r"The disk with .* is full\."):
        ensure_engine()
