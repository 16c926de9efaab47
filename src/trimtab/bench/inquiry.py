"""What every criterion works with: the server, how to ask it, the bounds it is judged by, and what is left of the time.

Times are of the monotonic clock, so that a step of the wall clock changes nothing.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
import msgspec

from trimtab.bench.client import Exchange, Timeouts, ask, describe
from trimtab.bench.endpoint import NoTextError, Server, settle
from trimtab.bench.health import Health
from trimtab.bench.prompt import Ruler, make_ruler
from trimtab.bench.serverlog import LogSource
from trimtab.bench.wire import Answer, Bounds, address_of, send
from trimtab.engine.api import ApiFault, decode, read_fault
from trimtab.engine.vitals import Vitals, read_vitals
from trimtab.messages import Message, msg

OUTPUT_TOKENS = 16
METRICS_S = 10.0


class Limits(msgspec.Struct, frozen=True):
    """The bounds that verdicts are judged by."""

    itl_ms: float = 500.0  # 99th percentile of the gaps in short streams beside a long prompt
    ttft_ms: float = 2000.0  # 99th percentile of their first tokens
    recall: float = 0.8  # share of the needles that are found
    cancel_s: float = 5.0  # until a request whose client left is gone
    memory_mib: float = 256.0  # growth under a steady load
    noise: float = 0.1  # a change of a figure below it is none


class Memory(msgspec.Struct, frozen=True):
    """Memory of the server's processes in MiB; None where nobody tells."""

    host_mib: float | None = None
    gpu_mib: float | None = None


MemorySource = Callable[[], Memory | None]  # None: its processes are gone


class Reply(msgspec.Struct, frozen=True):
    """What came of a request that is no plain completion: its JSON, or what went wrong."""

    status: int | None = None
    value: Any = None
    fault: ApiFault | None = None
    trouble: Message | None = None

    @property
    def why(self) -> Message:
        """What went wrong, in words."""
        if self.trouble is not None:
            return self.trouble
        if self.fault is not None:
            return msg("{status}: {text}", status=self.fault.status, text=self.fault.message or "-")
        return msg("status {status}", status=self.status)


@dataclass
class Inquiry:
    """One verification under way."""

    client: httpx2.AsyncClient
    server: Server
    timeouts: Timeouts
    api_key: str | None = None
    asked_context: int | None = None
    concurrency: int = 8
    log: LogSource | None = None
    memory: MemorySource | None = None
    limits: Limits = field(default_factory=Limits)
    needle_share: float = 0.8
    memory_minutes: float = 2.0
    until: float | None = None  # perf_counter
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    before: Health = field(default_factory=lambda: Health(True, None, None))
    after: Health | None = None
    first: Exchange | None = None
    text: bool = True  # it answers with text; else it serves embeddings alone
    _ruler: Ruler | None = None

    async def prepare(self, prompt: str) -> None:
        """Ask for a first answer and learn how this server wants to be spoken to."""
        try:
            self.server, self.first = await settle(self.client, self.server, prompt, OUTPUT_TOKENS, self.timeouts)
        except NoTextError:
            reply = await self.post("/embeddings", {"model": self.server.model, "input": prompt})
            if reply.status != 200:
                raise
            self.text = False

    @property
    def context(self) -> int | None:
        return self.asked_context or self.server.context_tokens

    @property
    def vllm(self) -> bool:
        """Whether it tells vLLM's counters."""
        return self.before.engine is not None

    def left_s(self) -> float | None:
        """Seconds left of the time budget; None without one."""
        return None if self.until is None else self.until - time.perf_counter()

    async def ask(self, prompt: str, output_tokens: int, *, stream: bool = False) -> Exchange:
        """One request in the dialect of the server."""
        body = self.server.body(prompt, output_tokens, stream=stream)
        return await ask(self.client, self.server.url, body, self.timeouts)

    async def send(self, prompt: str, output_tokens: int, *, whole: bool = True) -> Answer:
        """One streamed request with every chunk stamped; `whole`: vLLM is told to use up `output_tokens`."""
        body = self.server.body(prompt, output_tokens, stream=True)
        if whole and self.vllm:
            body["ignore_eos"] = True
        wait = Bounds(self.timeouts.connect_s, self.timeouts.first_s, self.timeouts.between_s)
        return await send(address_of(self.server.url, self.api_key), body, wait)

    async def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        """POST to a path of the API; never raises for what the server does."""
        found = await self.read(path, body)
        return found if isinstance(found, Reply) else Reply(200, decode(found))

    async def read(self, path: str, body: Mapping[str, Any]) -> bytes | Reply:
        """The whole body of a streamed answer; a Reply that says why there is none."""
        try:
            response = await self.client.post(f"{self.server.api}{path}", json=dict(body))
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL) as error:
            return Reply(trouble=describe(error, self.timeouts))
        if response.status_code != 200:
            return Reply(response.status_code, fault=read_fault(response.status_code, response.content))
        return response.content

    async def vitals(self) -> Vitals | None:
        """vLLM's counters now; None without."""
        try:
            response = await self.client.get(f"{self.server.root}/metrics", timeout=METRICS_S)
        except (httpx2.TransportError, httpx2.DecodingError):
            return None
        return read_vitals(response.content) if response.status_code == 200 else None

    async def ruler(self) -> Ruler | None:
        """How long texts are in this server's tokens, measured once; None when it counts none."""
        if self._ruler is None:
            self._ruler = await make_ruler(self.client, self.server, self.mark, self.timeouts)
        return self._ruler


NO_CONTEXT = msg("the server does not state its context: pass it with --context")
NO_COUNT = msg("tokens cannot be counted: no /tokenize, and no usage in a first answer, or no answer at all")
