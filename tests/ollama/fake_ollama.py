"""A stand-in for the Ollama server: its API's shapes and its files on disk (2026-08), no engine.

It keeps models as Ollama does, in ``manifests`` and ``blobs``, so that what reads the disk meets the same.
"""

from __future__ import annotations

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from gguf import GGUFReader

from xlm_ollama.names import ModelName

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LAYER = "application/vnd.ollama.image."
Layer = dict[str, Any]


class ModelStore:
    """Manifests and blobs in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "blobs").mkdir(parents=True)

    def add_blob(self, content: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.blob(digest).write_bytes(content)
        return digest

    def blob(self, digest: str) -> Path:
        return self.folder / "blobs" / digest.replace(":", "-")

    def layer(self, kind: str, digest: str) -> Layer:
        return {"mediaType": LAYER + kind, "digest": digest, "size": self.blob(digest).stat().st_size}

    def add_layer(self, kind: str, content: bytes) -> Layer:
        return self.layer(kind, self.add_blob(content))

    def write(self, name: str, layers: list[Layer]) -> None:
        path = self.folder / "manifests" / ModelName.parse(name).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"schemaVersion": 2, "layers": layers}), encoding="utf-8")

    def layers(self, name: str) -> list[Layer] | None:
        path = self.folder / "manifests" / ModelName.parse(name).path
        if not path.is_file():
            return None
        layers: list[Layer] = json.loads(path.read_text(encoding="utf-8"))["layers"]
        return layers

    def delete(self, name: str) -> None:
        (self.folder / "manifests" / ModelName.parse(name).path).unlink()

    def names(self) -> list[str]:
        manifests = self.folder / "manifests"
        return [
            str(ModelName(*path.relative_to(manifests).parts)) for path in sorted(manifests.glob("*/*/*/*"))
        ]

    def parameters(self, layers: list[Layer]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for layer in layers:
            if layer["mediaType"] == f"{LAYER}params":
                merged |= json.loads(self.blob(layer["digest"]).read_bytes())
        return merged

    def architecture(self, layers: list[Layer]) -> str:
        model = next(layer for layer in layers if layer["mediaType"] == f"{LAYER}model")
        return str(metadata(self.blob(model["digest"]))["general.architecture"])


def metadata(path: Path) -> dict[str, Any]:
    return {name: field.contents() for name, field in GGUFReader(path).fields.items()}


class Endpoints(BaseHTTPRequestHandler):
    store: ModelStore

    def do_GET(self) -> None:
        assert self.path == "/api/tags"
        models = [{"name": name, "model": name, "size": 1} for name in self.store.names()]
        self._answer({"models": models})

    def do_POST(self) -> None:
        body = self._body()
        if self.path.startswith("/api/blobs/"):
            digest = self.store.add_blob(body)
            self._answer(None, 201 if self.path.endswith(digest) else 400)
            return
        handler = {"/api/create": self._create, "/api/show": self._show, "/api/copy": self._copy}[self.path]
        handler(json.loads(body))

    def do_DELETE(self) -> None:
        name = json.loads(self._body())["model"]
        if self.store.layers(name) is None:
            self._answer({"error": f"model '{name}' not found"}, 404)
            return
        self.store.delete(name)
        self._answer(None)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def _create(self, request: dict[str, Any]) -> None:
        layers = self.store.layers(request["from"]) if request.get("from") else []
        if layers is None:
            self._answer({"error": "pull model manifest: file does not exist"}, 404)
            return
        for digest in request.get("files", {}).values():
            layers.append(self.store.layer(self._kind(digest), digest))
        for digest in request.get("adapters", {}).values():
            if self._kind(digest) != "adapter":
                self._answer({"error": "unknown adapter type"}, 400)
                return
            layers.append(self.store.layer("adapter", digest))
        if parameters := request.get("parameters"):
            merged = self.store.parameters(layers) | parameters
            layers = [layer for layer in layers if layer["mediaType"] != f"{LAYER}params"]
            layers.append(self.store.add_layer("params", json.dumps(merged).encode()))
        self.store.write(request["model"], layers)
        self._answer({"status": "success"})

    def _kind(self, digest: str) -> str:
        keys = metadata(self.store.blob(digest))
        kinds = {"adapter": "adapter", "mmproj": "projector"}
        return kinds.get(str(keys.get("general.type")), "model")

    def _show(self, request: dict[str, Any]) -> None:
        layers = self.store.layers(request["model"])
        if layers is None:
            self._answer({"error": f"model '{request['model']}' not found"}, 404)
            return
        parameters = self.store.parameters(layers)
        lines = ['# Modelfile generated by "ollama show"', ""]
        words = {"model": "FROM", "projector": "FROM", "adapter": "ADAPTER"}
        for kind, word in words.items():
            found = [layer for layer in layers if layer["mediaType"] == LAYER + kind]
            lines += [f"{word} {self.store.blob(layer['digest'])}" for layer in found]
        lines += [f"PARAMETER {name} {value}" for name, value in parameters.items()]
        self._answer(
            {
                "modelfile": "\n".join(lines) + "\n",
                "parameters": "\n".join(f"{name:30} {value}" for name, value in parameters.items()),
                "details": {"format": "gguf"},
                "model_info": {"general.architecture": self.store.architecture(layers)},
            }
        )

    def _copy(self, request: dict[str, Any]) -> None:
        layers = self.store.layers(request["source"])
        if layers is None:
            self._answer({"error": f"model '{request['source']}' not found"}, 404)
            return
        self.store.write(request["destination"], layers)
        self._answer(None)

    def _body(self) -> bytes:
        if "Content-Length" in self.headers:
            return self.rfile.read(int(self.headers["Content-Length"]))
        # The client sends files in chunks.
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, value: object, status: int = 200) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(store: ModelStore) -> Iterator[str]:
    """Serve ``store`` and yield the address."""
    handler = type("StoreEndpoints", (Endpoints,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
