"""A stand-in for CMake: it compiles nothing, keeps its calls, and fails as its ``behaviour`` file says."""

import os
import signal
import sys
from pathlib import Path

HERE = Path(__file__).parent
OUTPUTS = {"llama-server": "bin/llama-server", "ggml-xlm": "libggml-xlm.so"}
FAILURES = {
    "compiler error": "FAILED: ggml.o\n/src/ggml.c:7:1: error: expected ';' before 'return'\n1 error.",
    "disk full": "/tmp/cc1.s: fatal error: error writing to output: No space left on device",
    "memory short": "c++: fatal error: Killed signal terminated program cc1plus",
}


def configure(arguments: list[str], behaviour: str) -> int:
    if behaviour == "configure error":
        print("CMake Error at CMakeLists.txt:9 (find_package):\n  Could NOT find Vulkan (missing: glslc)\n")
        return 1
    build, source = (Path(arguments[arguments.index(option) + 1]) for option in ("-B", "-S"))
    generator = arguments[arguments.index("-G") + 1]
    build.mkdir(exist_ok=True)
    cache = f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\nCMAKE_GENERATOR:INTERNAL={generator}\n"
    (build / "CMakeCache.txt").write_text(cache)
    return 0


def compile_targets(arguments: list[str], behaviour: str) -> int:
    print("[1/2] Building C object ggml.o", flush=True)
    if behaviour == "killed":
        os.kill(os.getppid(), signal.SIGKILL)
        return 1
    if behaviour == "endless":
        signal.pause()
    if behaviour in FAILURES:
        print(FAILURES[behaviour])
        return 1
    build, target = Path(arguments[1]), arguments[arguments.index("--target") + 1]
    output = build / OUTPUTS[target]
    output.parent.mkdir(exist_ok=True)
    output.touch()
    print(f"[2/2] Linking {target}")
    return 0


def main(arguments: list[str]) -> int:
    behaviour_file = HERE / "behaviour"
    behaviour = behaviour_file.read_text() if behaviour_file.exists() else ""
    if arguments == ["--version"]:
        print("cmake version 3.10.2" if behaviour == "old" else "cmake version 3.25.1")
        return 0
    with (HERE / "calls").open("a") as calls:
        print(*arguments, file=calls)
    run = compile_targets if arguments[0] == "--build" else configure
    return run(arguments, behaviour)


sys.exit(main(sys.argv[1:]))
