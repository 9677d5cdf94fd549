"""Live control over HTTP: routes under ``/xlm`` that vLLM's API server gains where VLLM_PLUGINS names us.

Each answer has a ``workers`` list; what cannot be done is an ``error`` with a ``hint``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import JSONResponse

from xlm_plugin.errors import UsageError, XlmError
from xlm_plugin.units import parse_bytes
from xlm_vllm.flags import PLUGIN

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable

    from fastapi import FastAPI
    from starlette.datastructures import State
    from starlette.requests import Request
    from vllm.engine.protocol import EngineClient

    Route = Callable[["EngineClient", Request], Awaitable[dict[str, Any]]]

_BAD_REQUEST, _CONFLICT, _UNAVAILABLE = 400, 409, 503


class RefusedError(XlmError):
    """A worker did not do what it was asked for, and changed nothing."""


class XlmEndpoints:
    """vLLM's endpoint plugin ``xlm``."""

    name = "xlm"
    required_tasks = ("generate",)

    def attach_router(self, app: FastAPI) -> None:
        """Add the routes."""
        for path, (method, route) in _ROUTES.items():
            app.add_route(f"/xlm/{path}", _answering(route), methods=[method])

    async def init_state(
        self,
        engine_client: EngineClient | None,
        state: State,
        args: Namespace,  # noqa: ARG002
    ) -> None:
        """Keep the engine for the routes."""
        state.xlm_engine = engine_client


def _answering(route: Route) -> Callable[[Request], Awaitable[JSONResponse]]:
    async def answer(request: Request) -> JSONResponse:
        engine = getattr(request.app.state, "xlm_engine", None)
        if engine is None:
            return _error("This server has no engine.", "", _UNAVAILABLE)
        try:
            return JSONResponse(await route(engine, request))
        except RefusedError as error:
            return _error(error.message, error.hint, _CONFLICT)
        except XlmError as error:
            return _error(error.message, error.hint, _BAD_REQUEST)

    return answer


def _error(message: str, hint: str, status: int) -> JSONResponse:
    return JSONResponse({"error": message, "hint": hint}, status_code=status)


async def _ask(engine: EngineClient, method: str, *arguments: object) -> dict[str, Any]:
    """Return what all workers answer. Raises RefusedError where one did not do it."""
    if engine.vllm_config.load_config.load_format != PLUGIN:
        raise UsageError("This engine does not load through xlm.", "Start it with 'xlm vllm serve'.")
    reports = await engine.collective_rpc(method, args=arguments)
    for report in reports:
        if "error" in report:
            raise RefusedError(report["error"], report["hint"])
    return {"workers": reports}


async def _stats(engine: EngineClient, request: Request) -> dict[str, Any]:  # noqa: ARG001
    return {**await _ask(engine, "xlm_stats"), "paused": await engine.is_paused()}


async def _plan(engine: EngineClient, request: Request) -> dict[str, Any]:  # noqa: ARG001
    return await _ask(engine, "xlm_plan")


async def _budget(engine: EngineClient, request: Request) -> dict[str, Any]:
    return await _ask(engine, "xlm_resize", await _asked_bytes(request))


async def _park(engine: EngineClient, request: Request) -> dict[str, Any]:  # noqa: ARG001
    await _pause_engine(engine)
    try:
        return await _ask(engine, "xlm_park")
    except RefusedError:
        await engine.resume_generation()
        raise


async def _wake(engine: EngineClient, request: Request) -> dict[str, Any]:  # noqa: ARG001
    woken = await _ask(engine, "xlm_wake")
    await engine.resume_generation()
    return woken


async def _pause(engine: EngineClient, request: Request) -> dict[str, Any]:
    await _pause_engine(engine)
    return await _stats(engine, request)


async def _resume(engine: EngineClient, request: Request) -> dict[str, Any]:
    await engine.resume_generation()
    return await _stats(engine, request)


async def _pause_engine(engine: EngineClient) -> None:
    # Clearing caches would drop the KV of running requests, which is then computed anew.
    await engine.pause_generation(mode="keep", clear_cache=False)


async def _asked_bytes(request: Request) -> int:
    wanted = """Send {"vram": "6GiB"}, or a number of bytes."""
    try:
        body = await request.json()
    except (ValueError, RecursionError):
        raise UsageError("The body is not JSON.", wanted) from None
    value = body.get("vram") if isinstance(body, dict) else None
    if isinstance(value, str):
        return parse_bytes(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        raise UsageError("The body names no budget.", wanted)
    return value


_ROUTES: dict[str, tuple[str, Route]] = {
    "stats": ("GET", _stats),
    "plan": ("GET", _plan),
    "budget": ("POST", _budget),
    "park": ("POST", _park),
    "wake": ("POST", _wake),
    "pause": ("POST", _pause),
    "resume": ("POST", _resume),
}
