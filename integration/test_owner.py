"""An engine does not outlive the command that started it, however that ends."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

SERVE = ("serve", "demo", "--device", "emulated", "--vram", "96MiB", "--ctx", "512", "--port", "0")


@pytest.mark.usefixtures("backend", "demo")
def test_a_killed_serve_leaves_no_engine_even_a_parked_one() -> None:
    xlm = Path(sys.executable).with_name("xlm")
    with subprocess.Popen([xlm, *SERVE], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as serve:
        assert serve.stdout
        assert serve.stdout.readline().startswith(b"http://")
        (engine,) = psutil.Process(serve.pid).children()
        subprocess.run([xlm, "park", str(engine.pid)], check=True)
        serve.kill()
    until = time.monotonic() + 10
    while engine.is_running() and engine.status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < until, "the engine goes on"
        time.sleep(0.05)
