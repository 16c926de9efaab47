"""The admin API as an ASGI application: bodies in, answers out; the store is asked in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import msgspec
from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trimtab.errors import TrimtabError, UsageError
from trimtab.gateway.admin import ENDPOINTS, Asked, Endpoint, Fault, Process, Refusal
from trimtab.gateway.mounted import Mounted
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
        paths = dict.fromkeys(e.path for e in ENDPOINTS)
        routes = [Route(path, self._resource({e.method: e for e in ENDPOINTS if e.path == path})) for path in paths]
        routes.append(Route("/admin/openapi.json", _openapi, methods=["GET"]))
        self.mounted = Mounted(Starlette(routes=routes, exception_handlers={HTTPException: _not_served}))

    def close(self) -> None:
        """Wait for the call that runs, and close the store."""
        self._thread.shutdown(wait=True)
        if self._store is not None:
            self._store.close()

    def _resource(self, methods: Mapping[str, Endpoint]) -> type[HTTPEndpoint]:
        """All methods of one path, so that its 405 names them."""
        return type("Resource", (HTTPEndpoint,), {name.lower(): self._handler(e) for name, e in methods.items()})

    def _handler(self, endpoint: Endpoint) -> Callable[[HTTPEndpoint, Request], Awaitable[Response]]:
        async def answer(resource: HTTPEndpoint, request: Request) -> Response:
            try:
                _require_known(endpoint, request.query_params)
                asked = Asked(request.path_params.get("name", ""), request.query_params, await _body(endpoint, request))
                found = await self._found(endpoint, asked)
            except TrimtabError as error:
                status = 409 if type(error) is UsageError else error.http_status  # it contradicts what there is
                return refused(status, str(error.message), str(error.hint))
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                return refused(400, f"what was sent is not as it should be: {error}")
            return (
                _json(endpoint.status, found) if endpoint.gives is not None else Response(status_code=endpoint.status)
            )

        return answer

    async def _found(self, endpoint: Endpoint, asked: Asked) -> object:
        if endpoint.answer is None:
            if endpoint.path == "/admin/reload":
                return await self._process.reload()
            return self._process.back_ends()
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._asked, endpoint, asked)

    def _asked(self, endpoint: Endpoint, asked: Asked) -> object:
        assert endpoint.answer is not None
        if self._store is None:
            self._store = self._opened()
        return endpoint.answer(self._store, asked)


def _require_known(endpoint: Endpoint, query: Mapping[str, str]) -> None:
    """ValueError for a parameter with another name: left out it would widen what was asked for."""
    for name in query:
        if name not in endpoint.query:
            raise ValueError(f"there is no parameter {name!r}; known here: {', '.join(endpoint.query) or 'none'}")


async def _body(endpoint: Endpoint, request: Request) -> object:
    if endpoint.takes is None:
        return None
    return msgspec.convert(_whole_numbers(msgspec.json.decode(await request.body())), endpoint.takes)


def _whole_numbers(value: object) -> object:
    """1.0 is an integer to JSON Schema, and so to whoever calls by the document."""
    if isinstance(value, dict):
        return {name: _whole_numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


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
