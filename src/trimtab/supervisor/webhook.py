"""One event to one webhook, within one bound. Run apart from the supervisor, which can end it whatever it waits for."""

from __future__ import annotations

import signal
from types import FrameType
from urllib.parse import urlsplit

import msgspec

from trimtab.messages import Message, msg
from trimtab.supervisor.apart import call_apart

START_S = 10.0  # for the process that asks to start, and for a name server that does not answer


class Failed(msgspec.Struct, frozen=True):
    """Why a webhook did not take an event, and whether the same request may go well a moment later."""

    why: Message
    passing: bool


def post(url: str, body: bytes, bound_s: float) -> Failed | None:
    """POST `body`; None when the answer was of 2xx. Its own address alone is named: a path may hold a secret."""
    try:
        failed: Failed | None = call_apart(f"{__name__}:post_here", url, body, bound_s, bound_s=bound_s + START_S)
    except OSError as error:  # it broke, took too long or could not be started
        return _failed(url, error, passing=True)
    return failed


def post_here(url: str, body: bytes, bound_s: float) -> Failed | None:
    """`post` in this process, whose alarm it takes: a bound on each wait alone lets headers trickle for ever."""
    import httpx2

    headers = {"Content-Type": "application/json", "User-Agent": "trimtab"}
    signal.signal(signal.SIGALRM, _over)
    try:
        with httpx2.Client(timeout=bound_s) as client:
            signal.setitimer(signal.ITIMER_REAL, bound_s)
            with client.stream("POST", url, content=body, headers=headers) as got:
                status = got.status_code
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return _failed(url, error, passing=not isinstance(error, httpx2.InvalidURL))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    if 200 <= status < 300:
        return None
    why = msg("the webhook at {host} answered {status}", host=urlsplit(url).hostname or "", status=status)
    return Failed(why, passing=status >= 500 or status in (408, 429))


def _over(number: int, frame: FrameType | None) -> None:
    raise TimeoutError("no whole answer in time")


def _failed(url: str, error: Exception, *, passing: bool) -> Failed:
    reason = str(error) or type(error).__name__
    place = urlsplit(url).hostname or ""
    return Failed(msg("the webhook at {host} failed: {reason}", host=place, reason=reason), passing)
