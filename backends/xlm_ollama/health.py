"""The checks of ``xlm ollama doctor``. Each looks at one thing and says what to do about it."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from xlm_ollama.install import SETTINGS, planner_command, state_of
from xlm_ollama.layout import find_layout
from xlm_ollama.support import supported_release
from xlm_plugin.cli._check_list import Check
from xlm_plugin.errors import XlmError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_ollama.layout import Layout

# A planner that takes longer to say that there is nothing to plan is a broken one.
_PLANNER_SECONDS = 60
_SERVICE = Path("/etc/systemd/system/ollama.service")


def all_checks(prefix: Path | None, service: Path = _SERVICE) -> list[Check]:
    """Return all checks in the order of their printing. Nothing here raises or changes anything."""
    return [*_install_checks(prefix, service), _server_check()]


def _install_checks(prefix: Path | None, service: Path) -> Iterator[Check]:
    try:
        layout = find_layout(prefix)
        yield Check("Ollama", "ok", str(layout.root))
        yield Check("engine", "ok", f"llama.cpp {supported_release(layout).version}")
    except XlmError as error:
        yield Check("Ollama", "fail", error.message, error.hint)
        return
    if not layout.accelerators:
        yield Check(
            "accelerators", "warn", "Ollama has no device library", "Models run on the CPU, without a plan."
        )
    state, fault = state_of(layout)
    if state == "installed":
        yield Check("device", "ok", str(layout.folder))
    else:
        advice = "Run 'xlm ollama install'; an upgrade of Ollama removes it."
        yield Check("device", "fail", fault or "xlm is not in Ollama's folder", advice)
        return
    yield _planner_check(layout)
    if service.exists():
        yield _reach_check()


def _planner_check(layout: Layout) -> Check:
    """Say whether the planner that is installed answers."""
    advice = "Run 'xlm ollama install' again, from the Python that xlm is in now."
    try:
        command = json.loads((layout.folder / SETTINGS).read_text(encoding="utf-8"))["planner"]
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=_PLANNER_SECONDS, check=True, cwd="/"
        )
        answers = "stock" in json.loads(asked.stdout)
    except (OSError, ValueError, KeyError, subprocess.SubprocessError):
        answers = False
    if not answers:
        return Check("planner", "fail", "the planner does not answer", advice)
    if command != planner_command():
        return Check("planner", "warn", f"the planner is {command[0]}, not this xlm's", advice)
    return Check("planner", "ok", " ".join(command))


def _reach_check() -> Check:
    """Say whether the user that the service runs as can start the planner."""
    for path in (Path(sys.executable), Path(sys.executable).resolve(), Path(__file__)):
        for folder in path.parents:
            if not folder.stat().st_mode & stat.S_IXOTH:
                return Check(
                    "service",
                    "fail",
                    f"{folder} is closed to other users, and so is the planner to Ollama's service",
                    f"Install xlm-plugin where all may read it, such as /opt, or run: chmod o+x {folder}",
                )
    return Check("service", "ok", "Ollama's service can start the planner")


def _server_check() -> Check:
    """Say whether the server answers, and how many models are enabled."""
    from xlm_ollama.client import OllamaServer
    from xlm_ollama.enabled import enabled_models

    try:
        count = len(enabled_models(OllamaServer()))
    except XlmError as error:
        return Check("server", "warn", error.message, error.hint)
    return Check("server", "ok", f"{count} models run under a plan")
