"""Find an OpenAI-compatible server behind a URL: root, model, endpoint, dialect. What stands in the way is raised."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

import httpx2

from trimtab.bench.client import Exchange, Timeouts, ask, describe, tls_fault
from trimtab.engine.api import ServedModel, decode, is_html, read_fault, read_models, split_base_url
from trimtab.errors import UpstreamError
from trimtab.messages import Message, msg

# A model without a chat template, and one that takes plain completions only (vLLM 0.6 to 0.33).
_NO_CHAT = ("chat template", "chat_template", "does not support chat completions")


LIST_S = 30.0  # for a list of models


class NoTextError(UpstreamError):
    """It serves no model that generates text."""


@dataclass(frozen=True, slots=True)
class Target:
    """The three things that a client needs; without a model the first one served is taken."""

    base_url: str
    api_key: str | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """A server found: how to speak with it."""

    root: str  # without /v1
    api: str  # with /v1
    model: str
    models: tuple[ServedModel, ...]
    context_tokens: int | None
    chat: bool = True
    max_tokens_name: str = "max_tokens"
    temperature: bool = True
    stream_usage: bool = True

    @property
    def url(self) -> str:
        return f"{self.api}/chat/completions" if self.chat else f"{self.api}/completions"

    def body(self, prompt: str, output_tokens: int, *, stream: bool) -> dict[str, Any]:
        """A request in the words that this server takes."""
        body: dict[str, Any] = {"model": self.model, self.max_tokens_name: output_tokens}
        body |= {"messages": [{"role": "user", "content": prompt}]} if self.chat else {"prompt": prompt}
        if self.temperature:
            body["temperature"] = 0
        if stream:
            body["stream"] = True
            if self.stream_usage:
                body["stream_options"] = {"include_usage": True}
        return body


def is_url(text: str) -> bool:
    """Whether it is an http or https URL that a server can be at."""
    try:
        parts = urlsplit(text)
        plain = not parts.query and not parts.fragment and not any(c.isspace() for c in text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and plain
    except ValueError:  # a port beyond 65535 or no number, an address in brackets that is none
        return False


def check_target(target: Target) -> None:
    """Refuse what no server can answer: a URL without scheme or host, a key with blanks in it."""
    if not is_url(target.base_url.strip()):
        raise UpstreamError(
            msg("{url} is not a URL of a server", url=target.base_url),
            hint=msg("Write it as http://HOST:PORT/v1."),
        )
    key = target.api_key
    if key and (key.strip() != key or any(c.isspace() for c in key) or not key.isascii()):
        raise UpstreamError(
            msg("the key holds a blank, a line break or a character that no key has; it was not sent"),
            hint=msg("Copy the key again, without what stands around it."),
        )


async def find_server(client: httpx2.AsyncClient, target: Target, timeouts: Timeouts) -> Server:
    """Ask /v1/models and settle the model; UpstreamError when this is no server that can be asked for text."""
    root = split_base_url(target.base_url)
    response = await _get(client, f"{root}/v1/models", timeouts)
    api = f"{root}/v1"
    if response.status_code == 404:
        plain = await _get(client, f"{root}/models", timeouts)
        if plain.status_code != 404:
            response, api = plain, root
    if response.status_code == 404 and target.model:
        return Server(root, f"{root}/v1", target.model, (), None)
    models = await _models(client, response, root, target, timeouts)
    served = next((m for m in models if m.id == target.model), None)
    chosen = target.model or models[0].id
    stated = served or (models[0] if target.model is None else None)
    return Server(root, api, chosen, models, stated.context_tokens if stated else None)


async def answering_server(client: httpx2.AsyncClient, target: Target, timeouts: Timeouts) -> Server:
    """The server behind `target` as it is to be spoken to; UpstreamError unless it answers a first short request."""
    server, first = await settle(client, await find_server(client, target, timeouts), "Say a word.", 4, timeouts)
    if not first.finished:
        raise UpstreamError(msg("{url} does not answer a short request: {reason}", url=server.url, reason=first.why))
    return server


async def version_of(client: httpx2.AsyncClient, server: Server) -> str | None:
    """The version that vLLM tells at /version; None of every other server."""
    try:
        async with asyncio.timeout(LIST_S):
            response = await client.get(f"{server.root}/version")
    except (TimeoutError, httpx2.TransportError, httpx2.DecodingError):
        return None
    value = decode(response.content) if response.status_code == 200 else None
    found = value.get("version") if isinstance(value, dict) else None
    return found[:80] if isinstance(found, str) else None


async def settle(
    client: httpx2.AsyncClient, server: Server, prompt: str, output_tokens: int, timeouts: Timeouts
) -> tuple[Server, Exchange]:
    """Send the first request, changing the dialect as the server's refusals ask; the server as it is to be spoken to.

    UpstreamError when it wants another key or model, or has no endpoint for text.
    """
    for _ in range(6):
        done = await ask(client, server.url, server.body(prompt, output_tokens, stream=False), timeouts)
        other = adapt(server, done)
        if other is None:
            break
        server = other
    fault = done.fault
    if fault is not None and fault.status in (401, 403):
        raise refused_key(server.url, fault.status, None if "Authorization" not in client.headers else "given")
    if fault is not None and "does not support completions" in fault.message.lower():
        raise _no_text(server)
    if fault is not None and fault.about_model:
        raise UpstreamError(
            msg(
                "{url} does not serve the model {model}: {text}", url=server.api, model=server.model, text=fault.message
            ),
            hint=msg("Pass one that it serves with --model: {models}.", models=_names(server.models)),
        )
    if fault is not None and fault.status in (404, 405):
        raise _no_text(server)
    return server, done


def _no_text(server: Server) -> UpstreamError:
    return NoTextError(
        msg("{url} answers neither /chat/completions nor /completions", url=server.api),
        hint=msg("Pass the URL of a server that generates text, or of an embedding model with /embeddings."),
    )


def adapt(server: Server, done: Exchange) -> Server | None:
    """The server in another dialect, when its refusal of `done` asks for one: endpoint, name of the limit, extras."""
    fault = done.fault
    if fault is None or done.status not in (400, 404, 405, 422):
        return None
    text = f"{fault.message} {fault.param}".lower()
    if server.chat and any(word in text for word in _NO_CHAT):
        return replace(server, chat=False)
    if server.chat and fault.status in (404, 405) and not fault.about_model:
        return replace(server, chat=False)
    if fault.status in (404, 405):
        return None
    if server.max_tokens_name == "max_tokens" and "max_completion_tokens" in text:
        return replace(server, max_tokens_name="max_completion_tokens")
    if server.temperature and "temperature" in text:
        return replace(server, temperature=False)
    return None


def refused_key(url: str, status: int, key: str | None) -> UpstreamError:
    """The error for a 401 or 403."""
    if not key:
        return UpstreamError(
            msg("{url} asks for a key ({status}) and none was given", url=url, status=status),
            hint=msg("Pass it with --key, or set TRIMTAB_API_KEY; vLLM's is the value of its --api-key."),
        )
    return UpstreamError(
        msg("{url} refused the key ({status})", url=url, status=status),
        hint=msg("Compare it with the server's: vLLM's is the value of --api-key or of VLLM_API_KEY where it started."),
    )


async def _get(client: httpx2.AsyncClient, url: str, timeouts: Timeouts) -> httpx2.Response:
    """GET with a bound on the whole: a server that sends a byte now and then would never end it."""
    bound_s = min(LIST_S, timeouts.first_s)
    try:
        async with asyncio.timeout(bound_s):
            return await client.get(url, timeout=httpx2.Timeout(bound_s, connect=timeouts.connect_s))
    except (TimeoutError, httpx2.ReadTimeout) as error:
        raise UpstreamError(
            msg("{url}: no whole answer within {seconds:g} s", url=url, seconds=bound_s),
            hint=msg("Check that the server is not stuck: its log tells; or wait until it has less to do."),
        ) from error
    except httpx2.DecodingError as error:
        raise UpstreamError(
            msg("{url}: the answer cannot be decoded: {reason}", url=url, reason=str(error)),
            hint=msg("A proxy before the server may spoil it: ask the server itself."),
        ) from error
    except httpx2.TransportError as error:
        raise _unreachable(url, error, timeouts) from error


def _unreachable(url: str, error: httpx2.TransportError, timeouts: Timeouts) -> UpstreamError:
    hint: Message | None = None
    parts = urlsplit(url)
    fault = tls_fault(error)
    if isinstance(fault, ssl.SSLCertVerificationError):
        hint = msg("Make its certificate known with SSL_CERT_FILE.")
    elif parts.scheme == "https" and (fault is not None or not isinstance(error, httpx2.ConnectError)):
        hint = msg("The port may speak plain HTTP: try http://{host}.", host=parts.netloc)
    elif isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        hint = msg("Check host and port, and that the server has finished starting.")
    elif isinstance(error, httpx2.RemoteProtocolError | httpx2.ReadError):
        hint = msg("The port may speak TLS, or no HTTP at all: try https://{host}.", host=parts.netloc)
    return UpstreamError(msg("{url}: {reason}", url=url, reason=describe(error, timeouts)), hint=hint)


async def _models(
    client: httpx2.AsyncClient, response: httpx2.Response, root: str, target: Target, timeouts: Timeouts
) -> tuple[ServedModel, ...]:
    url, status = str(response.url), response.status_code
    if status in (401, 403):
        raise refused_key(url, status, target.api_key)
    if response.is_redirect:
        raise UpstreamError(
            msg("{url} sends elsewhere: {place}", url=url, place=response.headers.get("location", "-")),
            hint=msg("Pass the URL it sends to, if that is the API; a login page is not."),
        )
    if "plain http request was sent to https" in response.text[:500].lower():
        raise UpstreamError(
            msg("{url}: the port speaks TLS", url=url), hint=msg("Try https://{host}.", host=urlsplit(url).netloc)
        )
    if is_html(response.content):
        raise UpstreamError(
            msg("{url} answers with a web page, not with JSON ({status})", url=url, status=status),
            hint=msg("Pass the URL of the API, which often ends in /v1; this is the one of a page or of a proxy."),
        )
    if status == 404:
        raise await _no_such_path(client, root, timeouts)
    if status != 200:
        fault = read_fault(status, response.content)
        raise UpstreamError(
            msg("{url} answers {status}: {text}", url=url, status=status, text=fault.message or "-"),
            hint=msg("Wait until the server is ready, or read its log."),
        )
    models = read_models(decode(response.content))
    if models is None:
        raise UpstreamError(
            msg("{url} is no model list, so this is not an OpenAI-compatible server", url=url),
            hint=msg("Check the port: another program may listen there."),
        )
    if not models:
        raise UpstreamError(
            msg("{url} lists no model", url=url), hint=msg("Load a model in that server, or pass its id with --model.")
        )
    return models


async def _no_such_path(client: httpx2.AsyncClient, root: str, timeouts: Timeouts) -> UpstreamError:
    parts = urlsplit(root)
    origin = f"{parts.scheme}://{parts.netloc}"
    if origin != root:
        response = await _get(client, f"{origin}/v1/models", timeouts)
        if response.status_code in (200, 401, 403) and not is_html(response.content):
            return UpstreamError(
                msg("{url} has no /v1/models, but {origin}/v1 has", url=root, origin=origin),
                hint=msg("Pass {origin}/v1.", origin=origin),
            )
    return UpstreamError(
        msg("{url} has no /v1/models, so this is not an OpenAI-compatible server", url=root),
        hint=msg(
            "Check the port and the path: the URL of the API often ends in /v1. Without a model list pass --model."
        ),
    )


def _names(models: tuple[ServedModel, ...]) -> str:
    return ", ".join(m.id for m in models[:8]) or "-"
