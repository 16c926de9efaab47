"""Ask an endpoint, the smallest request first, and write down what came of each; `rules/client` judges it.

Nothing is raised for what a server does or does not: a failure is what is looked for.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx2

from trimtab.bench.client import tls_fault
from trimtab.engine.api import DONE, EventStream, decode, read_delta, read_models, split_base_url
from trimtab.engine.evidence import MOST_BODY, Answer, Evidence, Key, Trouble

LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")
UNREACHABLE = (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.EHOSTDOWN, errno.ENETDOWN)
TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
STREAM_TOKENS = 16
MOST_BANNER = 120
WHO = ("server", "via", "x-powered-by", "x-jupyter-version", "x-litellm-version")


@dataclass(frozen=True, slots=True)
class Asked:
    """The three things that a client needs, as the user gave them, and how long one request may take."""

    url: str
    key: str | None = None
    model: str | None = None
    bound_s: float = 20.0
    environ: Mapping[str, str] = field(default_factory=dict)


def probe(asked: Asked) -> Evidence:
    """Ask step by step until one settles that nothing more can be learnt. Takes a few requests' time."""
    return asyncio.run(_Probe(asked).run())


class _Probe:
    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.url = asked.url.strip().rstrip("/")
        self.parts = urlsplit(self.url)
        self.root = f"{self.parts.scheme}://{self.parts.netloc}"
        self.api = f"{split_base_url(self.url)}/v1"
        self.answers: list[Answer] = []
        self.models: tuple[str, ...] = ()
        self.model = asked.model
        self.context: int | None = None
        self.proxies: dict[str, str] = {}

    async def run(self) -> Evidence:
        if await self._connect():
            async with self._client() as client:
                await self._ask_all(client)
        version = next((decode(a.body) for a in self.answers if a.step == "version" and a.ok), None)
        return Evidence(
            url=self.url,
            key=_shape(self.asked.key),
            model=self.model,
            models=self.models,
            context_tokens=self.context,
            version=str(version["version"]) if isinstance(version, dict) and "version" in version else None,
            answers=tuple(self.answers),
            local=self.parts.hostname in LOOPBACK,
            proxies=self.proxies,
        )

    async def _connect(self) -> bool:
        """Whether something listens there at all."""
        host = self.parts.hostname or ""
        port = self.parts.port or (443 if self.parts.scheme == "https" else 80)
        began = time.perf_counter()
        try:
            async with asyncio.timeout(min(10.0, self.asked.bound_s)):
                _, writer = await asyncio.open_connection(host, port)
        except (OSError, UnicodeError) as error:
            trouble, detail = _why_no_connection(error)
            self._note(Answer(
                step="connect", url=self.url, method="TCP", trouble=trouble, detail=detail,
                seconds=time.perf_counter() - began,
            ))  # fmt: skip
            return False
        await _drop(writer)
        return True

    async def _ask_all(self, client: httpx2.AsyncClient) -> None:
        root = await self._get(client, "root", f"{self.root}/")
        if root.trouble is not None:
            await self._settle_tls(root)
            return
        await self._get(client, "health", f"{self.root}/health")
        await self._get(client, "version", f"{self.root}/version")
        models = await self._list(client)
        if models.status in (401, 403):
            await self._try_keys(models.url)
            return
        chat = await self._chat(client)
        if chat.status in (404, 405) and not models.ok:
            await self._get(client, "generate", f"{self.root}/generate")
        if chat.ok:
            await self._stream(client)
            await self._post(client, "tools", {**self._body(1), "tools": [TOOL], "tool_choice": "auto"})
        await self._through_proxy(models.url)

    async def _list(self, client: httpx2.AsyncClient) -> Answer:
        """The models as a client would list them, and below /v1 where that is another place."""
        models = await self._get(client, "models", f"{self.url}/models")
        below = models
        if not models.ok and f"{self.url}/models" != f"{self.api}/models":
            below = await self._get(client, "models below /v1", f"{self.api}/models")
        listed = read_models(decode(below.body)) if below.ok else None
        if listed:
            self.models = tuple(model.id for model in listed)
            self.model = self.model or listed[0].id
            self.context = next((m.context_tokens for m in listed if m.id == self.model), None)
        return models if models.ok or models is below else below if below.status in (401, 403) else models

    async def _chat(self, client: httpx2.AsyncClient) -> Answer:
        return await self._post(client, "chat", self._body(1))

    def _body(self, tokens: int) -> dict[str, object]:
        messages = [{"role": "user", "content": "Say hello."}]
        return {"model": self.model or "default", "messages": messages, "max_tokens": tokens}

    async def _try_keys(self, url: str) -> None:
        """Whether the same key without blanks and quotes, or in the header of other APIs, is taken."""
        key = self.asked.key
        if key is None:
            return
        plain = "".join(key.removeprefix("Bearer ").split()).strip("\"'`")
        if plain != key:
            async with self._client({"Authorization": f"Bearer {plain}"}) as client:
                await self._get(client, "key stripped", url)
        async with self._client({"x-api-key": plain, "api-key": plain}) as client:
            await self._get(client, "other header", url)

    async def _through_proxy(self, url: str) -> None:
        """The same request as clients send it that follow the environment's proxies, where one applies."""
        found = _proxies_for(self.parts.scheme, self.parts.netloc, self.asked.environ)
        if not found:
            return
        self.proxies = {name: _without_login(value) for name, value in found.items()}
        try:
            client = self._client(proxy=next(iter(found.values())))
        except (ValueError, ImportError, httpx2.InvalidURL) as error:
            self._note(Answer(step="proxied", url=url, trouble=Trouble.PROXY, detail=str(error)))
            return
        async with client:
            await self._get(client, "proxied", url)

    async def _stream(self, client: httpx2.AsyncClient) -> None:
        """One short streamed answer: in how many pieces its events come, and whether it comes to its end."""
        url, began = f"{self.url}/chat/completions", time.perf_counter()
        got, trouble, detail, status, kind, who = _Streamed(), None, "", None, "", ""
        try:
            async with (
                asyncio.timeout(self.asked.bound_s),
                client.stream("POST", url, json={**self._body(STREAM_TOKENS), "stream": True}) as response,
            ):
                status, kind, who = response.status_code, response.headers.get("content-type", ""), _who(response)
                async for piece in response.aiter_bytes():
                    got.take(piece)
        except (httpx2.TransportError, httpx2.DecodingError, TimeoutError) as error:
            trouble, detail = _why_no_answer(error)
            trouble = Trouble.CUT if status == 200 and trouble is Trouble.CLOSED else trouble
        self._note(Answer(
            step="stream", url=url, method="POST", status=None if trouble else status, kind=kind, server=who,
            trouble=trouble, detail=detail, seconds=time.perf_counter() - began, first_s=got.first_s,
            events=got.events, lumps=got.lumps, text=got.text, finish_reason=got.finish_reason, body=got.body,
        ))  # fmt: skip

    async def _get(self, client: httpx2.AsyncClient, step: str, url: str) -> Answer:
        return await self._request(client, step, "GET", url, None)

    async def _post(self, client: httpx2.AsyncClient, step: str, body: Mapping[str, object]) -> Answer:
        return await self._request(client, step, "POST", f"{self.url}/chat/completions", body)

    async def _request(
        self, client: httpx2.AsyncClient, step: str, method: str, url: str, body: Mapping[str, object] | None
    ) -> Answer:
        began = time.perf_counter()
        read, response = b"", None
        try:
            async with asyncio.timeout(self.asked.bound_s), client.stream(method, url, json=body) as response:
                async for piece in response.aiter_bytes():
                    read += piece
                    if len(read) > 64 * MOST_BODY:
                        break
        except (httpx2.TransportError, httpx2.DecodingError, httpx2.InvalidURL, TimeoutError) as error:
            trouble, detail = _why_no_answer(error)
            trouble = Trouble.CUT if response is not None and trouble is Trouble.CLOSED else trouble
            return self._note(Answer(
                step=step, url=url, method=method, trouble=trouble, detail=detail, seconds=time.perf_counter() - began,
            ))  # fmt: skip
        return self._note(Answer(
            step=step, url=url, method=method, status=response.status_code,
            kind=response.headers.get("content-type", ""), server=_who(response),
            location=response.headers.get("location", ""), asks=response.headers.get("www-authenticate", ""),
            body=_shown(read, step),
            seconds=time.perf_counter() - began,
        ))  # fmt: skip

    async def _settle_tls(self, root: Answer) -> None:
        """Whether a port that gives no HTTP answer speaks TLS."""
        if self.parts.scheme == "https" or root.trouble not in (Trouble.CLOSED, Trouble.NOT_HTTP, Trouble.CUT):
            return
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            async with asyncio.timeout(5.0):
                _, writer = await asyncio.open_connection(self.parts.hostname, self.parts.port or 80, ssl=context)
        except (OSError, TimeoutError):
            await self._read_banner()
            return
        await _drop(writer)
        self._note(Answer(step="tls", url=self.url, method="TLS", trouble=Trouble.PLAIN_TO_TLS, detail="TLS answers"))

    async def _read_banner(self) -> None:
        """The first bytes of what closes instead of answering: a program that speaks no HTTP often names itself."""
        try:
            async with asyncio.timeout(5.0):
                reader, writer = await asyncio.open_connection(self.parts.hostname, self.parts.port or 80)
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                said = await reader.read(MOST_BANNER)
        except (OSError, TimeoutError):
            return
        await _drop(writer)
        if said and not said.startswith(b"HTTP/"):
            text = said.decode("utf-8", errors="replace").strip()
            self._note(Answer(step="banner", url=self.url, method="TCP", trouble=Trouble.NOT_HTTP, detail=text))

    def _client(self, headers: Mapping[str, str] | None = None, proxy: str | None = None) -> httpx2.AsyncClient:
        if headers is None:
            key = "".join((self.asked.key or "").splitlines()).strip()
            headers = {"Authorization": f"Bearer {key}"} if key and key.isascii() and key.isprintable() else {}
        return httpx2.AsyncClient(
            headers=dict(headers), timeout=self.asked.bound_s, trust_env=False, proxy=proxy, follow_redirects=False
        )

    def _note(self, answer: Answer) -> Answer:
        self.answers.append(answer)
        return answer


@dataclass
class _Streamed:
    """A streamed answer while it comes: its text, and what stands in place of it, an error or something else."""

    began: float = field(default_factory=time.perf_counter)
    parser: EventStream = field(default_factory=EventStream)
    raw: bytes = b""  # the beginning
    error: str = ""  # the event that tells one
    lumps: int = 0
    events: int = 0
    first_s: float | None = None
    text: str = ""
    finish_reason: str | None = None

    def take(self, piece: bytes) -> None:
        self.raw = (self.raw + piece)[:MOST_BODY]
        found = self.parser.feed(piece)
        self.lumps += bool(found)
        for event in found:
            self.events += 1
            self.first_s = self.first_s if self.first_s is not None else time.perf_counter() - self.began
            delta = read_delta(decode(event.data)) if event.data != DONE else None
            if delta is not None:
                self.text += delta.text
                self.finish_reason = delta.finish_reason or self.finish_reason
                self.error = self.error or (event.data[:MOST_BODY] if delta.fault is not None else "")

    @property
    def body(self) -> str:
        return self.error if self.events else self.raw.decode("utf-8", errors="replace")


async def _drop(writer: asyncio.StreamWriter) -> None:
    """Close at once; the loop then lets go of the socket."""
    writer.transport.abort()
    await asyncio.sleep(0)


def _shape(key: str | None) -> Key | None:
    if key is None:
        return None
    return Key(
        has_blank=any(c.isspace() for c in key.removeprefix("Bearer ")),
        has_quotes=key[:1] in "\"'`" or key[-1:] in "\"'`",
        has_scheme=key.lower().startswith("bearer "),
        length=len(key),
    )


def _shown(body: bytes, step: str) -> str:
    """A model list is read whole; of the rest the beginning tells enough."""
    text = body.decode("utf-8", errors="replace")
    return text if step.startswith("models") else text[:MOST_BODY]


def _who(response: httpx2.Response) -> str:
    return ", ".join(response.headers[name] for name in WHO if name in response.headers)


def _why_no_connection(error: Exception) -> tuple[Trouble, str]:
    if isinstance(error, TimeoutError):
        return Trouble.CONNECT_TIMEOUT, "no connection in time"
    if isinstance(error, socket.gaierror | UnicodeError):
        return Trouble.DNS, str(error)
    number = getattr(error, "errno", None)
    detail = getattr(error, "strerror", None) or str(error)
    if isinstance(error, ConnectionRefusedError) or "refused" in detail.lower() or "refused" in str(error).lower():
        return Trouble.REFUSED, detail
    return (Trouble.UNREACHABLE if number in UNREACHABLE else Trouble.OTHER), detail


def _why_no_answer(error: Exception) -> tuple[Trouble, str]:
    tls = tls_fault(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return Trouble.CERTIFICATE, str(tls)
    if tls is not None:
        return Trouble.TLS_TO_PLAIN, str(tls)
    if isinstance(error, httpx2.ProxyError):
        return Trouble.PROXY, str(error)
    if isinstance(error, httpx2.ConnectError):
        return _why_no_connection(error)
    if isinstance(error, TimeoutError | httpx2.TimeoutException):
        return Trouble.TIMEOUT, "no answer in time"
    detail = str(error) or type(error).__name__
    if isinstance(error, httpx2.RemoteProtocolError) and "disconnected" not in detail and "closed" not in detail:
        return Trouble.NOT_HTTP, detail
    return Trouble.CLOSED, detail


def _proxies_for(scheme: str, netloc: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variable and proxy that clients take for this URL; empty where the host is excepted (curl's no_proxy)."""
    wanted = {name: value for name, value in environ.items() if name.lower().endswith("_proxy") and value}
    proxies = {name.lower().removesuffix("_proxy"): (name, value) for name, value in wanted.items()}
    chosen = proxies.get(scheme) or proxies.get("all")
    host = (urlsplit(f"//{netloc}").hostname or "").lower()
    for entry in ",".join(value for name, value in wanted.items() if name.lower() == "no_proxy").split(","):
        bare = entry.strip().lower().lstrip("*.")
        if entry.strip() == "*" or (bare and (host == bare or netloc == bare or host.endswith("." + bare))):
            return {}
    return {chosen[0]: chosen[1]} if chosen is not None else {}


def _without_login(proxy: str) -> str:
    scheme, mark, rest = proxy.partition("://")
    return f"{scheme}://***@{rest.rpartition('@')[2]}" if mark and "@" in rest else proxy
