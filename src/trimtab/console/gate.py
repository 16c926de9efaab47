"""Who may come in: logins, the secret that every form carries, and how often a wrong key may be tried."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import deque
from urllib.parse import urlsplit

from starlette.requests import Request

WINDOW_S, TRIES, TRIES_OF_ALL = 300.0, 10, 100  # wrong keys from one address, and from all, before the next must wait
MOST_ADDRESSES = 10_000
COOKIE, BEFORE_COOKIE = "trimtab_console", "trimtab_console_before"


def form_secret(login: str) -> str:
    """What every form of a login carries: made from the cookie's secret, which no other site can read."""
    return hmac.new(login.encode(), b"form", hashlib.sha256).hexdigest()


def is_form_secret(login: str, given: str) -> bool:
    """Whether a form came from a page of this login."""
    return bool(login) and hmac.compare_digest(form_secret(login).encode(), given.encode())


def is_own_page(request: Request) -> bool:
    """Whether the browser says that the request came from a page of this gateway, or says nothing of it."""
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")


class Throttle:
    """Counts wrong tries, of each address and of all, in this process."""

    def __init__(self) -> None:
        self._wrong: dict[str, deque[float]] = {}
        self._all: deque[float] = deque(maxlen=TRIES_OF_ALL)

    def wait_s(self, address: str) -> float:
        """Seconds until the next try is looked at; 0 where it is at once."""
        now = time.monotonic()
        found = self._wrong.get(address) or deque()
        waits = [found[0] + WINDOW_S - now] if len(found) == TRIES else []
        waits += [self._all[0] + WINDOW_S - now] if len(self._all) == TRIES_OF_ALL else []
        return max([0.0, *waits])

    def wrong(self, address: str) -> None:
        """One try failed."""
        now = time.monotonic()
        if len(self._wrong) >= MOST_ADDRESSES:
            self._wrong = {a: times for a, times in self._wrong.items() if times[-1] > now - WINDOW_S}
        self._wrong.setdefault(address, deque(maxlen=TRIES)).append(now)
        self._all.append(now)
