"""The admin API as an ASGI application: bodies in, answers out; the store is asked in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trimtab.errors import TrimtabError
from trimtab.gateway.admin import ENDPOINTS, Asked, Endpoint, Fault, Process, Refusal
from trimtab.gateway.openapi import document
from trimtab.gateway.store.database import Store

Opened = Callable[[], Store]
_CODES = {400: "invalid_request", 404: "not_found", 405: "method_not_allowed", 409: "conflict", 503: "unavailable"}


class Admin:
    """The application and what it keeps open: `opened` is called once, in the store's thread."""

    def __init__(self, opened: Opened, process: Process) -> None:
        self._opened, self._process = opened, process
        self._store: Store | None = None
        self._thread = ThreadPoolExecutor(1, "trimtab-admin")
        routes = [Route(e.path, self._handler(e), methods=[e.method]) for e in ENDPOINTS]
        routes.append(Route("/admin/openapi.json", _openapi, methods=["GET"]))
        self.application = Starlette(routes=routes, exception_handlers={HTTPException: _not_served})

    def close(self) -> None:
        """Wait for the call that runs, and close the store."""
        self._thread.shutdown(wait=True)
        if self._store is not None:
            self._store.close()

    def _handler(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            try:
                asked = Asked(request.path_params.get("name", ""), request.query_params, await _body(endpoint, request))
                found = await self._found(endpoint, asked)
            except TrimtabError as error:
                return refused(error.http_status, str(error.message), str(error.hint))
            except msgspec.MsgspecError as error:
                return refused(400, f"the body is not as it should be: {error}")
            except ValueError as error:
                return refused(400, str(error))
            return (
                _json(endpoint.status, found) if endpoint.gives is not None else Response(status_code=endpoint.status)
            )

        return answer

    async def _found(self, endpoint: Endpoint, asked: Asked) -> object:
        if endpoint.answer is None:
            return self._process.reload() if endpoint.path == "/admin/reload" else self._process.back_ends()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._asked, endpoint, asked)

    def _asked(self, endpoint: Endpoint, asked: Asked) -> object:
        assert endpoint.answer is not None
        if self._store is None:
            self._store = self._opened()
        return endpoint.answer(self._store, asked)


async def _body(endpoint: Endpoint, request: Request) -> object:
    if endpoint.takes is None:
        return None
    return msgspec.json.decode(await request.body(), type=endpoint.takes)


def refused(status: int, message: str, hint: str = "") -> Response:
    """An error's answer."""
    return _json(status, Refusal(Fault(_CODES.get(status, "error"), message, hint)))


def _json(status: int, found: object) -> Response:
    return Response(msgspec.json.encode(found), status, media_type="application/json")


async def _openapi(request: Request) -> Response:
    return _json(200, document(ENDPOINTS))


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    answer = refused(error.status_code, f"{request.method} {request.url.path} is not served here")
    answer.headers.update(error.headers or {})
    return answer
