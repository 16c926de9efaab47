"""/v1/models: what the back ends list, under the gateway's names, for OpenAI's clients and for Anthropic's at once."""

from __future__ import annotations

import time
from collections.abc import Sequence

from trimtab.gateway.routes import Routes

_KEPT = ("created", "max_model_len", "context_length", "context_window", "max_input_tokens")
_STARTED = int(time.time())


def entry(name: str, routes: Routes) -> dict[str, object]:
    """One model, with what its back end says of its context, which coding agents read."""
    told = routes.entries.get(name, {})
    found: dict[str, object] = {"id": name, "object": "model", "created": _STARTED, "owned_by": "trimtab"}
    found.update((field, told[field]) for field in _KEPT if told.get(field) is not None)
    created = found["created"]
    when = time.gmtime(created if isinstance(created, int | float) else _STARTED)
    return {**found, "type": "model", "display_name": name, "created_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", when)}


def listing(entries: Sequence[dict[str, object]]) -> dict[str, object]:
    """All of them."""
    first, last = (entries[0]["id"], entries[-1]["id"]) if entries else (None, None)
    return {"object": "list", "data": list(entries), "has_more": False, "first_id": first, "last_id": last}
