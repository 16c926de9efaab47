"""Hands a whole request to an ASGI application in this process, and its whole answer to the client."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote_to_bytes

from trimtab.gateway.inbound import Inbound
from trimtab.gateway.request import Refused, Request

Message = MutableMapping[str, Any]
Application = Callable[
    [Message, Callable[[], Awaitable[Message]], Callable[[Message], Awaitable[None]]], Awaitable[None]
]


class Late:
    """An application that its first request loads, in a thread: who never asks for it pays nothing."""

    def __init__(self, load: Callable[[], Application]) -> None:
        self._load = load
        self._loaded: Application | None = None
        self._loading = asyncio.Lock()

    async def __call__(
        self, scope: Message, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        if self._loaded is None:
            async with self._loading:
                if self._loaded is None:
                    self._loaded = await asyncio.to_thread(self._load)
        await self._loaded(scope, receive, send)


class Mounted:
    """The application beside the hot path."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._running: set[asyncio.Task[None]] = set()  # the loop itself keeps no task alive

    def __call__(self, request: Request, client: Inbound) -> _Call:
        call = _Call(request, client)
        call.task = asyncio.get_running_loop().create_task(call.run(self._application))
        self._running.add(call.task)
        call.task.add_done_callback(self._running.discard)
        return call


class _Call:
    """One request's life in the application."""

    def __init__(self, request: Request, client: Inbound) -> None:
        self._request, self._client = request, client
        self._heard = False
        self._status = 500
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self.task: asyncio.Task[None] | None = None

    async def run(self, application: Application) -> None:
        try:
            await application(_scope(self._request, self._client), self._receive, self._send)
        except Exception as error:
            self._client.refuse(self._request, Refused(500, "internal_error", "this is a bug of the gateway"))
            raise error
        self._answer()

    def client_lost(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def client_slow(self, slow: bool) -> None:
        """The answer is whole when it is sent: nothing is to be held back."""

    async def _receive(self) -> Message:
        if self._heard:
            await asyncio.get_running_loop().create_future()  # a client that leaves cancels the task
        self._heard = True
        return {"type": "http.request", "body": self._request.body, "more_body": False}

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status, self._headers = message["status"], list(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            self._pieces.append(message.get("body", b""))

    def _answer(self) -> None:
        named = {name.lower(): value for name, value in self._headers}
        kept = [(n, v) for n, v in self._headers if n.lower() not in (b"content-type", b"content-length")]
        extra = b"x-request-id: %b\r\n" % self._request.id + b"".join(b"%b: %b\r\n" % pair for pair in kept)
        kind = named.get(b"content-type", b"application/json")
        self._client.whole(self._status, b"".join(self._pieces), content_type=kind, extra=extra)


def _scope(request: Request, client: Inbound) -> Message:
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method.decode("ascii"),
        "scheme": "http",
        "path": unquote_to_bytes(request.path).decode("utf-8", "replace"),
        "raw_path": request.path,
        "query_string": request.query,
        "root_path": "",
        "headers": list({**request.headers, b"content-length": b"%d" % len(request.body)}.items()),
        "client": (client.peer, 0),
        "server": None,
    }
