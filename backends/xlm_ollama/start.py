"""What the device asks before Ollama's llama-server loads a model with an option.

``libggml-xlm.so`` in Ollama's folder runs this program when it is loaded into a llama-server that Ollama has
started with an option among its adapters. It takes the command from ``xlm.json`` beside it::

    {"planner": ["/path/python", "-m", "xlm_ollama.start"], "ggml_version": "0.20.2", "cache": ""}

**Asked with** llama-server's own arguments, as Ollama gives them, and the environment:

* ``XLM_START_DEVICES``: JSON, ``[{"name": "CUDA0", "description": "...", "backend": "CUDA",
  "free_bytes": 0, "total_bytes": 0}, ...]``, in ggml's order
* ``XLM_EMULATED``, where the device is the emulated one

**Answers** with one JSON object on stdout and exit code 0, either of::

    {"xlm": 1, "stock": "why this start stays without a plan, as a sentence"}
    {"xlm": 1, "arguments": ["--model", "..."], "environment": {"XLM_PLAN": "..."}, "keep": false}

``arguments`` are all that llama-server is to begin anew with, its own name left out: Ollama's, less the
option, with the device. ``environment`` is what to add to its own: ``XLM_PLAN`` (the plan's file),
``XLM_DEVICE`` (the device it is for) and ``XLM_SOCKET`` (the control socket). ``keep`` is false: the socket
is this process's own, so that every start has to ask. A plan that exists already is found in a fraction of
a second.

stderr has progress, a line at least every few seconds: Ollama gives a start that stays silent for 5 minutes
up. Any other exit code, or an answer that is none of these, means the stock engine too.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from xlm_plugin.errors import XlmError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROTOCOL = 1


def answer(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, object]:
    """Return the answer to a start with these arguments, which are without the program's name."""
    from xlm_ollama.planned_start import planned_start

    try:
        planned = planned_start(arguments, environment)
    except XlmError as error:
        return {"xlm": PROTOCOL, "stock": str(error)}
    # The model is to run in any case, and a traceback would look like the engine's in Ollama's log.
    except Exception as error:
        if environment.get("XLM_DEBUG") == "1":
            raise
        return {"xlm": PROTOCOL, "stock": f"This is a bug in xlm-plugin: {type(error).__name__}: {error}"}
    return {
        "xlm": PROTOCOL,
        "arguments": list(planned.arguments),
        "environment": dict(planned.environment),
        "keep": False,
    }


def main() -> None:
    """Answer for this process's own arguments."""
    import os

    print(json.dumps(answer(sys.argv[1:], os.environ)))


if __name__ == "__main__":
    main()
