"""What a server tells of itself: its models with their context, whether it wants a key, which protocols it speaks."""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException
from urllib.parse import urlsplit

import msgspec

from trimtab.connect.values import Protocol
from trimtab.engine.api import ServedModel, decode, read_models, split_base_url
from trimtab.errors import UpstreamError, UsageError
from trimtab.messages import Message, msg

BOUND_S = 10.0
MOST_BYTES = 4 << 20
LOOPBACK = ("localhost", "127.0.0.1", "::1")
NOT_HERE = (404, 501)


class Unserved(UpstreamError):
    """No list of models came. `code` is that of the doctor's rule for it."""

    def __init__(self, code: str, message: Message, hint: Message) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class Served(msgspec.Struct, frozen=True):
    """A server that answered. `spoken` are the protocols that it has a route for."""

    root: str
    models: tuple[ServedModel, ...]
    needs_key: bool
    spoken: tuple[Protocol, ...]

    def context_of(self, model: str) -> int | None:
        """Tokens of the model's context; None where the server does not say, or does not serve it."""
        return next((one.context_tokens for one in self.models if one.id == model), None)


def ask(url: str, key: str) -> Served:
    """Ask the server at `url` (with or without /v1). UpstreamError when it gives no list of models.

    A key that was given is sent only where the server asks for one.
    """
    root = split_base_url(url)
    if urlsplit(root).scheme not in ("http", "https") or not urlsplit(root).hostname:
        raise UsageError(
            msg("{url} is not a URL of a server", url=repr(url)), hint=msg("Write it as http://HOST:PORT/v1.")
        )
    status, body = _get(f"{root}/v1/models", "")
    needs_key = status in (401, 403)
    if needs_key and key:
        status, body = _get(f"{root}/v1/models", key)
    models = read_models(decode(body)) if status == 200 else None
    if models is None:
        raise _refused(root, status, bool(key))
    spoken = tuple(p for p in Protocol if _get(f"{root}{p.value}", key if needs_key else "")[0] not in NOT_HERE)
    return Served(root, models, needs_key, spoken)


def _refused(root: str, status: int, key: bool) -> Unserved:
    if status in (401, 403):
        return Unserved(
            "CLT002" if key else "CLT001",
            msg("{url} refuses the key ({status})", url=root, status=status)
            if key
            else msg("{url} asks for a key ({status})", url=root, status=status),
            msg("Give its key with --key, or in TRIMTAB_API_KEY."),
        )
    return Unserved(
        "CLT024",
        msg("{url}/v1/models gave no list of models ({status})", url=root, status=status),
        msg("trimtab doctor {url} says what answers there.", url=root),
    )


def _get(url: str, key: str) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    direct = [urllib.request.ProxyHandler({})] if urlsplit(url).hostname in LOOPBACK else []
    opener = urllib.request.build_opener(*direct)
    try:
        with opener.open(urllib.request.Request(url, headers=headers), timeout=BOUND_S) as answer:
            return answer.status, answer.read(MOST_BYTES)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""
    except urllib.error.URLError as error:
        raise _silent(url, str(error.reason)) from error
    except (OSError, HTTPException, ValueError) as error:
        raise _silent(url, str(error) or type(error).__name__) from error


def _silent(url: str, reason: Message | str) -> Unserved:
    return Unserved(
        "CLT021",
        msg("{url} does not answer: {reason}", url=url, reason=reason),
        msg("trimtab doctor {url} says why; trimtab ps lists the servers of this host.", url=url),
    )
