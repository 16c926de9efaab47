"""Whether an engine serves: its health endpoint, one real token, its counters. Asks only; the policy decides."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus

import msgspec

from trimtab.supervisor.connection import Answer, Connection

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


class _Usage(msgspec.Struct):
    completion_tokens: int


class _Completion(msgspec.Struct):
    choices: list[msgspec.Raw]
    usage: _Usage


class Probe:
    """Asks one server; keeps its connection. `url` is without /v1."""

    def __init__(self, url: str, *, api_key: str, model: str, health_s: float = HEALTH_TIMEOUT_S) -> None:
        self._http = Connection(url, {"Authorization": f"Bearer {api_key}"} if api_key else {}, health_s)
        self._model = model

    def health(self) -> Health:
        """GET /health."""
        status = self._http.get("/health").status
        if status == HTTPStatus.OK:
            return Health.OK
        return Health.BROKEN if status == BROKEN else Health.SILENT

    def token(self, timeout_s: float = TOKEN_TIMEOUT_S) -> Token:
        """One token from chat, else from completions; a model without both (embeddings) answers /v1/models."""
        asked = {"model": self._model, "max_tokens": 1, "temperature": 0}
        bodies = {
            "/v1/chat/completions": {**asked, "messages": [{"role": "user", "content": "Hi"}]},
            "/v1/completions": {**asked, "prompt": "Hi"},
        }
        for path, body in bodies.items():
            answer = self._http.post(path, msgspec.json.encode(body), timeout_s)
            if answer.status not in REFUSED:
                return _token(answer)
        return Token.GIVEN if self._http.get("/v1/models").status == HTTPStatus.OK else Token.REFUSED

    def metrics(self) -> bytes | None:
        """The body of /metrics; None where there is none."""
        answer = self._http.get("/metrics")
        return answer.body if answer.status == HTTPStatus.OK else None

    def close(self) -> None:
        self._http.close()


def _token(answer: Answer) -> Token:
    if answer.late:
        return Token.AWAITED
    return Token.GIVEN if answer.status == HTTPStatus.OK and _holds_token(answer.body) else Token.REFUSED


def _holds_token(body: bytes) -> bool:
    try:
        said = msgspec.json.decode(body, type=_Completion)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return bool(said.choices) and said.usage.completion_tokens >= 1
