"""Look at a server's /metrics again and again over one connection."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

import httpx2

from trimtab.engine.api import split_base_url
from trimtab.engine.bottleneck import Look
from trimtab.engine.vitals import read_vitals
from trimtab.errors import UpstreamError
from trimtab.messages import msg

ANSWER_S = 5.0


class Gauge:
    """One server, by the URL of it or of its API."""

    def __init__(self, url: str, api_key: str | None = None, *, local: bool = False) -> None:
        """`local`: it is of this host, so no proxy and no certificate stand between."""
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.root = split_base_url(url)
        self._client = httpx2.Client(timeout=ANSWER_S, headers=headers, trust_env=not local, verify=not local)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.close()

    def look(self) -> Look:
        """What it says now; None of it when it does not answer, or is not vLLM."""
        try:
            answer = self._client.get(f"{self.root}/metrics")
        except httpx2.HTTPError:
            return Look(time.time(), None)
        return Look(time.time(), read_vitals(answer.content) if answer.status_code == httpx2.codes.OK else None)

    def require(self) -> None:
        """UpstreamError when nothing answers at its address: it is wrong, or the server is down."""
        try:
            self._client.get(f"{self.root}/metrics")
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise UpstreamError(
                msg("{url} does not answer: {reason}", url=self.root, reason=str(error) or type(error).__name__)
            ) from error
