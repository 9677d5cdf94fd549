"""A stand-in for llama-server: the same arguments, endpoints and control socket, no model.

``FAKE`` in the environment makes it misbehave: ``refuse``, ``crash``, ``silent``, ``lose``, ``fail``,
``stubborn``.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FAKE = os.environ.get("FAKE", "")
WORDS = [(11, " a"), (12, " b"), (13, " c")]
TIMINGS = {"prompt_per_second": 100.0, "predicted_per_second": 50.0}


class Endpoints(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer({"status": "ok"})

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/apply-template":
            self._answer({"prompt": f"<user>{request['messages'][0]['content']}</user>"})
        elif len(request["prompt"]) > 100:
            self._answer({"error": {"code": 400, "message": "the prompt is longer than the context"}}, 400)
        elif FAKE == "fail":
            self._answer({"error": {"code": 500, "message": "Compute error."}}, 500)
            print("xlm: error: the device has no room for 3.00 MiB", file=sys.stderr, flush=True)
        elif FAKE == "lose":
            os._exit(3)
        elif request.get("stream"):
            self._stream(request)
        else:
            self._answer(self._completion(request))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _completion(self, request: dict[str, Any]) -> dict[str, Any]:
        words = WORDS[: request["n_predict"]]
        return {
            "content": "".join(text for _, text in words),
            "tokens": [token for token, _ in words],
            "completion_probabilities": [{"id": token, "logprob": -0.5} for token, _ in words],
            "tokens_evaluated": len(request["prompt"]),
            "stop": True,
            "timings": TIMINGS,
        }

    def _stream(self, request: dict[str, Any]) -> None:
        words = WORDS[: request["n_predict"]]
        parts: list[dict[str, Any]] = [
            {
                "content": text,
                "tokens": [token],
                "stop": False,
                "completion_probabilities": [{"id": token, "logprob": -0.5}],
            }
            for token, text in words
        ]
        last = {**self._completion(request), "content": "", "tokens": []}
        del last["completion_probabilities"]
        events = [*parts, last] if FAKE != "cut" else parts
        if FAKE == "refuse-stream":
            events = [{"error": {"message": "no more room"}}]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _answer(self, value: object, status: int = 200) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Control(socketserver.StreamRequestHandler):
    budget_bytes = 1000

    def handle(self) -> None:
        request = json.loads(self.rfile.readline())
        if request["command"] == "set_budget":
            Control.budget_bytes = request["budget_bytes"]
        stats = {
            "budget_bytes": Control.budget_bytes,
            "ledger_bytes": {"weights": 1, "staging": 2, "kv_and_compute": 3, "resident": 4},
            "device_bytes": 10,
            "link_bytes": 5,
            "link_seconds": 0.5,
            "steps": {"1": 7, "512": 2},
            "resident_shards": 3,
            "demoted_shards": 0,
            "prefetch_hits": 8,
            "prefetch_waits": 1,
            "wait_seconds": 0.25,
            "state": "running",
            "pid": os.getpid(),
            "plan_model": "fake",
        }
        self.wfile.write(json.dumps({"xlm": 1, "ok": True, **stats}).encode() + b"\n")


def main() -> None:
    if "--list-devices" in sys.argv:
        print("Available devices:\n  FAKE0: a fake (8 MiB, 8 MiB free)")
        return
    if FAKE == "refuse":
        print("loading", file=sys.stderr)
        print("xlm: error: the plan needs 5 bytes more than the device has", file=sys.stderr)
        sys.exit(1)
    if FAKE == "crash":
        print("\n".join(f"line {number}" for number in range(20)), file=sys.stderr)
        sys.exit(7)
    if FAKE == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAKE == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.environ.get("XLM_END_WITH_STDIN"):
        threading.Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()
    parser = argparse.ArgumentParser()
    parser.add_argument("--host")
    parser.add_argument("--port", type=int)
    arguments, _ = parser.parse_known_args()
    if path := os.environ.get("XLM_SOCKET"):
        assert Path(os.environ["XLM_PLAN"]).is_file()
        control = socketserver.ThreadingUnixStreamServer(path, Control)
        threading.Thread(target=control.serve_forever, daemon=True).start()
    ThreadingHTTPServer((arguments.host, arguments.port), Endpoints).serve_forever()


main()
