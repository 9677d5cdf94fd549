"""The same with Ollama itself, where ``XLM_TEST_OLLAMA`` names its program: ``/usr/local/bin/ollama``.

No Ollama was at hand when this was written. It runs a copy of the program beside links to its libraries, on a
port and with models of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration.ollama_contract.conftest import BUDGET_BYTES, NEW_TOKENS, PROMPT, install
from integration.ollama_contract.layout import OllamaLayout
from integration.ollama_contract.runner import free_port
from xlm_ollama.option import Option

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import httpx

    from integration.ollama_contract.server import OllamaModel
    from xlm_llamacpp.engine import InstalledEngine

PROGRAM = os.environ.get("XLM_TEST_OLLAMA", "")
START_SECONDS = 60

pytestmark = pytest.mark.skipif(
    not PROGRAM, reason="there is no real Ollama (XLM_TEST_OLLAMA names no ollama program)"
)


@pytest.fixture(scope="module")
def shadow(engine: InstalledEngine, tmp_path_factory: pytest.TempPathFactory) -> OllamaLayout:
    """The real Ollama with xlm in it, without a change of its own folders."""
    program = Path(PROGRAM).resolve()
    layout = OllamaLayout(tmp_path_factory.mktemp("real") / "ollama")
    layout.program.parent.mkdir(parents=True)
    layout.library.mkdir(parents=True)
    shutil.copy2(program, layout.program)
    for path in (program.parent.parent / "lib" / "ollama").iterdir():
        target = layout.library / path.name
        if path.name == layout.server.name:
            # The engine looks for backends beside its real file.
            shutil.copy2(path, target)
        else:
            target.symlink_to(path.resolve())
    install(layout, engine)
    return layout


@pytest.fixture(scope="module")
def served(
    shadow: OllamaLayout, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    """``ollama serve``, as the environment in which to speak to it."""
    home = tmp_path_factory.mktemp("real-home")
    served = {
        **environment,
        "HOME": str(home),
        "OLLAMA_HOST": f"127.0.0.1:{free_port()}",
        "OLLAMA_MODELS": str(home / "models"),
        "OLLAMA_FLASH_ATTENTION": "1",
    }
    with (home / "log").open("w") as log:
        server = subprocess.Popen([shadow.program, "serve"], env=served, stdout=log, stderr=log)
    try:
        with client(served) as http:
            wait_for(http)
        yield served
    finally:
        server.terminate()
        server.wait(START_SECONDS)


def client(served: dict[str, str]) -> httpx.Client:
    import httpx

    return httpx.Client(base_url=f"http://{served['OLLAMA_HOST']}", timeout=300, trust_env=False)


def wait_for(http: httpx.Client) -> None:
    import httpx

    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with suppress(httpx.TransportError):
            if http.get("/api/version").is_success:
                return
        time.sleep(0.1)
    pytest.fail("ollama serve does not answer")


def test_a_model_with_an_option_says_what_it_says_without_and_takes_its_budget_at_most(
    shadow: OllamaLayout,
    served: dict[str, str],
    model: OllamaModel,
    option_file: Callable[[Option], Path],
    tmp_path: Path,
) -> None:
    def create(name: str, *lines: str) -> None:
        modelfile = tmp_path / name
        own = [f"FROM {model.blob}", "PARAMETER num_ctx 512", "PARAMETER num_batch 64"]
        modelfile.write_text("\n".join([*own, *lines]), encoding="utf-8")
        subprocess.run([shadow.program, "create", name, "-f", modelfile], env=served, check=True)

    def generate(http: httpx.Client, name: str) -> str:
        options = {"temperature": 0, "num_predict": NEW_TOKENS}
        question = {"model": name, "prompt": PROMPT, "raw": True, "stream": False, "options": options}
        return str(http.post("/api/generate", json=question).raise_for_status().json()["response"])

    create("stock")
    create("planned", f"ADAPTER {option_file(Option(BUDGET_BYTES))}")
    with client(served) as http:
        stock = generate(http, "stock")
        assert generate(http, "planned") == stock
        running = {entry["name"]: entry for entry in http.get("/api/ps").json()["models"]}
        assert 0 < running["planned:latest"]["size_vram"] <= BUDGET_BYTES
