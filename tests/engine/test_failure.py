from __future__ import annotations

from pathlib import Path

import pytest

from xlm_llamacpp.engine.failure import build_error

NOT_FOUND = """\
-- Looking for Vulkan
CMake Error at FindPackageHandleStandardArgs.cmake:230 (message):
  Could NOT find Vulkan (missing: Vulkan_LIBRARY glslc) (found
  version "")
Call Stack (most recent call first):
  ggml/src/ggml-vulkan/CMakeLists.txt:9 (find_package)
"""
NO_TARGET = """\
CMake Error at ggml/src/ggml-cuda/CMakeLists.txt:176 (target_link_libraries):
  Target "ggml-cuda" links to:

    CUDA::cublas

  but the target was not found.  Possible reasons include:

    * There is a typo in the target name.
"""


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        (NOT_FOUND, 'Could NOT find Vulkan (missing: Vulkan_LIBRARY glslc) (found version "")'),
        (NO_TARGET, 'Target "ggml-cuda" links to: CUDA::cublas but the target was not found'),
        ("CMake Error: The source directory is empty.\n", "CMake Error: The source directory is empty"),
        (
            "a.cpp:1:2: warning: w\na.cpp:3:4: error: first\nb.cpp:5:6: error: second",
            "a.cpp:3:4: error: first",
        ),
        ("ld: cannot find -lcuda\ncollect2: error: ld returned 1", "ld: cannot find -lcuda"),
        (
            "Collecting x\nERROR: No matching distribution found for x\n",
            "No matching distribution found for x",
        ),
        ("ninja: build stopped: subcommand failed.\n", "ninja: build stopped: subcommand failed"),
        ("", "it printed nothing"),
    ],
)
def test_the_cause_of_a_failure_is_found_in_its_output(output: str, cause: str) -> None:
    error = build_error("Building", output.splitlines(), Path("/log"))
    assert error.message == f"Building failed: {cause}."
    assert error.hint == "The log: /log."
