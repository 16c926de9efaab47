"""Responses that a back end keeps (`/responses/{id}` and what is below it): whoever has it is found by asking."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator

import msgspec

from trimtab.gateway import errors
from trimtab.gateway.admission import Key
from trimtab.gateway.asking import ask
from trimtab.gateway.flow import Flow, names, renamed
from trimtab.gateway.inbound import Inbound
from trimtab.gateway.outbound import Outbound
from trimtab.gateway.request import Refused, Request
from trimtab.gateway.routes import BackEnd, Routes
from trimtab.gateway.usage import StreamUsage

PATH = b"/responses"
WITHIN_S = 30.0  # for a back end to say whether it has the response
_BELOW = re.compile(rb"/responses/([\w.:-]{1,128})(/cancel|/input_items)?")
_STREAM = re.compile(rb"(?:^|&)stream=(?:true|1)(?:&|$)", re.IGNORECASE)
_TAKES = {b"": b"GET, DELETE", b"/cancel": b"POST", b"/input_items": b"GET"}
Ids = dict[str, str]  # a back end's ids of models -> the names here


class _Kept(msgspec.Struct):
    model: str


_kept = msgspec.json.Decoder(_Kept)


class Stored:
    """Answers these paths; the tasks under way are kept here, as the loop keeps none alive."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, path: bytes, request: Request, client: Inbound, key: Key, routes: Routes) -> _Call:
        """Begin; `path` without /v1. Refused 403, 404 or 405."""
        found = _BELOW.fullmatch(path)
        if found is None:
            raise Refused(404, "not_found", f"there is no {path.decode('latin-1')} here")
        if request.method not in (takes := _TAKES[found[2] or b""]).split(b", "):
            told = f"{path.decode('latin-1')} takes {takes.decode()}"
            raise Refused(405, "method_not_allowed", told, allow=takes)
        if not key.may_ask(PATH):
            raise Refused(403, "endpoint_not_allowed", "this key may not use /responses")
        call = _Call(request, client, path, found[1])
        call.task = asyncio.get_running_loop().create_task(call.run(list(_candidates(key, routes))))
        self._tasks.add(call.task)
        call.task.add_done_callback(self._tasks.discard)
        return call


def _candidates(key: Key, routes: Routes) -> Iterator[tuple[BackEnd, Ids]]:
    """Each back end that may keep a response of a model that the key may use."""
    found: dict[str, tuple[BackEnd, Ids]] = {}
    for name in routes.names:
        route = routes.find(name)
        for target in (t for level in route.levels for t in level) if route is not None and key.may_use(name) else ():
            if "responses" in target.back_end.speaks:
                found.setdefault(target.back_end.name, (target.back_end, {}))[1].setdefault(target.model, name)
    yield from found.values()


class _Call:
    """One of these requests."""

    def __init__(self, request: Request, client: Inbound, path: bytes, id: bytes) -> None:
        self._request, self._client, self._path, self._id = request, client, path, id
        self._passing: _Passing | None = None
        self.task: asyncio.Task[None] | None = None

    async def run(self, candidates: list[tuple[BackEnd, Ids]]) -> None:
        request, client = self._request, self._client
        asks_it = request.method == b"GET" and self._path.endswith(b"/" + self._id)
        try:
            back_end, there, here, body = await self._owner(candidates)
            if asks_it and _STREAM.search(request.query):
                self._passing = _Passing(client, request, StreamUsage(hide=False, names=names(there, here)))
                await self._passing.run(back_end, self._target(back_end))
                return
            status = 200
            if not asks_it or request.query:
                told = await self._ask(back_end, self._target(back_end), request.method)
                if told is None:
                    raise Refused(502, "back_end_failed", "the back end that has the response does not answer")
                status, body = told
            client.whole(status, renamed(body, there, here), extra=b"x-request-id: %b\r\n" % request.id)
        except Refused as refused:
            client.refuse(request, refused)

    def _target(self, back_end: BackEnd) -> bytes:
        return back_end.base + self._path + (b"?" + self._request.query if self._request.query else b"")

    async def _owner(self, candidates: list[tuple[BackEnd, Ids]]) -> tuple[BackEnd, str, str, bytes]:
        """Who has it, its model's id there and here, and the response. Refused 404; 502 when one could not be asked."""
        asked = [self._ask(one, b"%b%b/%b" % (one.base, PATH, self._id)) for one, _ in candidates]
        silent = False
        for (back_end, ids), told in zip(candidates, await asyncio.gather(*asked), strict=True):
            if told is None:
                silent = True
                continue
            status, body = told
            try:
                model = _kept.decode(body).model if status == 200 else None
            except msgspec.DecodeError:
                model = None
            if model in ids:
                return back_end, model, ids[model], body
        id = self._id.decode()
        if silent:
            told_of = f"no back end that answers has the response {id}, and one that may have it does not answer"
            raise Refused(502, "back_end_failed", told_of)
        told_of = f"no back end has the response {id}: vLLM keeps them with VLLM_ENABLE_RESPONSES_API_STORE=1 alone"
        raise Refused(404, "response_not_found", f"{told_of}, and translated ones are not kept", param="response_id")

    async def _ask(self, back_end: BackEnd, path: bytes, method: bytes = b"GET") -> tuple[int, bytes] | None:
        """Status and body, None when it does not answer."""
        try:
            sent = self._request.body if method == b"POST" else None
            return await ask(back_end, path, WITHIN_S, sent, method=method)
        except (OSError, TimeoutError, ValueError):
            return None

    def client_lost(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def client_slow(self, slow: bool) -> None:
        if self._passing is not None:
            self._passing.pause(slow)


class _Passing:
    """The owner's answer, passed on as it comes."""

    def __init__(self, client: Inbound, request: Request, flow: Flow) -> None:
        self._client, self._request, self._flow = client, request, flow
        self._connection: Outbound | None = None
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self, back_end: BackEnd, target: bytes) -> None:
        """Ask, and pass on to the end. Refused while nothing was sent."""
        bounds = back_end.bounds
        head = b"GET %b HTTP/1.1\r\n%bX-Request-Id: %b\r\n\r\n" % (target, back_end.fixed, self._request.id)
        try:
            async with asyncio.timeout(bounds.total):
                connection = self._connection = await back_end.pool.dial(bounds.connect)
                connection.send(head, self)
                await self._done
        except (OSError, TimeoutError) as error:
            refused = Refused(502, "back_end_failed", f"the back end gave no whole answer: {error or 'time-out'}")
            if not self._client.sent_bytes:
                raise refused from error
            self._client.cut(errors.event(PATH, refused))
        finally:
            if self._connection is not None and self._connection.receiver is self:
                self._connection.abandon()

    def pause(self, slow: bool) -> None:
        if self._connection is not None and self._connection.receiver is self:
            self._connection.pause(slow)

    # the answer's receiver

    def answer_begins(self, connection: Outbound) -> None:
        head = b"%b\r\nx-request-id: %b\r\nx-accel-buffering: no" % (connection.told.text, self._request.id)
        self._client.start(head, chunked=True, probe=b":\n\n")

    def answer_piece(self, data: bytes) -> None:
        self._client.send(self._flow.pass_on(data))

    def answer_ends(self, last: bytes) -> None:
        self._client.finish(self._flow.pass_on(last) + self._flow.rest())
        self._end(None)

    def answer_breaks(self, reason: str) -> None:
        self._end(ConnectionError(reason))

    def _end(self, error: Exception | None) -> None:
        if self._done.done():
            return
        if error is None:
            self._done.set_result(None)
        else:
            self._done.set_exception(error)
