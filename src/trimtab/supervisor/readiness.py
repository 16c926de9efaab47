"""Whether an engine serves: its health endpoint, then one real token. Asks only; the policy decides."""

from __future__ import annotations

from typing import Any

import httpx2 as httpx

HEALTH_TIMEOUT_S, TOKEN_TIMEOUT_S = 5.0, 120.0
REFUSED = (400, 404, 405, 422, 501)  # this model has no such endpoint, or no chat template: ask the next one


class Probe:
    """Asks one server; keeps its connection. `url` is without /v1."""

    def __init__(self, url: str, *, api_key: str, model: str) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        # trust_env off: a proxy of the environment must not stand between us and this host. verify off: the URL is a
        # plain http one of this host, and reading every root certificate for it takes longer than asking.
        self._http = httpx.Client(
            base_url=url, headers=headers, timeout=HEALTH_TIMEOUT_S, trust_env=False, verify=False
        )  # fmt: skip
        self._model = model

    def healthy(self) -> bool:
        """GET /health answers 200."""
        try:
            return self._http.get("/health").status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def answers(self) -> bool:
        """One token comes from chat, else from completions; a model without both (embeddings) answers /v1/models."""
        try:
            asked = {"model": self._model, "max_tokens": 1, "temperature": 0}
            chat = self._post("/v1/chat/completions", {**asked, "messages": [{"role": "user", "content": "Hi"}]})
            if chat.status_code not in REFUSED:
                return _has_token(chat)
            plain = self._post("/v1/completions", {**asked, "prompt": "Hi"})
            if plain.status_code not in REFUSED:
                return _has_token(plain)
            return self._http.get("/v1/models").status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False

    def close(self) -> None:
        self._http.close()

    def _post(self, path: str, body: dict[str, Any]) -> httpx.Response:
        return self._http.post(path, json=body, timeout=TOKEN_TIMEOUT_S)


def _has_token(reply: httpx.Response) -> bool:
    if reply.status_code != httpx.codes.OK:
        return False
    try:
        body = reply.json()
        return bool(body["choices"]) and int(body["usage"]["completion_tokens"]) >= 1
    except (ValueError, KeyError, TypeError):
        return False
