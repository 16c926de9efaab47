"""Whether an engine serves: its health endpoint, one real token, its counters. Asks only; the policy decides."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import httpx2 as httpx

HEALTH_TIMEOUT_S, TOKEN_TIMEOUT_S = 5.0, 120.0
REFUSED = (400, 404, 405, 422, 501)  # this model has no such endpoint, or no chat template: ask the next one
BROKEN = 503  # vLLM answers so at /health once its engine is dead


class Health(StrEnum):
    """What /health says."""

    OK = "ok"
    BROKEN = "broken"  # it answers that the engine is gone
    SILENT = "silent"  # no answer, or none of vLLM's


class Token(StrEnum):
    """What came of asking for one token."""

    GIVEN = "given"
    REFUSED = "refused"  # an answer without a token, or no connection
    AWAITED = "awaited"  # no answer within the bound


class Probe:
    """Asks one server; keeps its connection. `url` is without /v1."""

    def __init__(self, url: str, *, api_key: str, model: str, health_s: float = HEALTH_TIMEOUT_S) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # trust_env off: a proxy of the environment must not stand between us and this host. verify off: the URL is a
        # plain http one of this host, and reading every root certificate for it takes longer than asking.
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=health_s, trust_env=False, verify=False
        )  # fmt: skip
        self._model = model

    def health(self) -> Health:
        """GET /health."""
        try:
            status = self._http.get("/health").status_code
        except httpx.HTTPError:
            return Health.SILENT
        if status == httpx.codes.OK:
            return Health.OK
        return Health.BROKEN if status == BROKEN else Health.SILENT

    def token(self, timeout_s: float = TOKEN_TIMEOUT_S) -> Token:
        """One token from chat, else from completions; a model without both (embeddings) answers /v1/models."""
        try:
            return Token.GIVEN if self._answers(timeout_s) else Token.REFUSED
        except httpx.ReadTimeout:
            return Token.AWAITED
        except httpx.HTTPError:
            return Token.REFUSED

    def metrics(self) -> str | None:
        """The text of /metrics; None where there is none."""
        try:
            reply = self._http.get("/metrics")
        except httpx.HTTPError:
            return None
        return reply.text if reply.status_code == httpx.codes.OK else None

    def _answers(self, timeout_s: float) -> bool:
        asked = {"model": self._model, "max_tokens": 1, "temperature": 0}
        messages = [{"role": "user", "content": "Hi"}]
        chat = self._post("/v1/chat/completions", {**asked, "messages": messages}, timeout_s)
        if chat.status_code not in REFUSED:
            return _has_token(chat)
        plain = self._post("/v1/completions", {**asked, "prompt": "Hi"}, timeout_s)
        if plain.status_code not in REFUSED:
            return _has_token(plain)
        return bool(self._http.get("/v1/models").status_code == httpx.codes.OK)

    def close(self) -> None:
        self._http.close()

    def _post(self, path: str, body: dict[str, Any], timeout_s: float) -> httpx.Response:
        return self._http.post(path, json=body, timeout=timeout_s)


def _has_token(reply: httpx.Response) -> bool:
    if reply.status_code != httpx.codes.OK:
        return False
    try:
        body = reply.json()
        return bool(body["choices"]) and int(body["usage"]["completion_tokens"]) >= 1
    except (ValueError, KeyError, TypeError):
        return False
