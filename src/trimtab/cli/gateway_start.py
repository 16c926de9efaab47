"""From a checked configuration to a gateway that serves: sockets, keys, processes."""

from __future__ import annotations

import os

from trimtab.cli.format import gateway as shown
from trimtab.cli.settings import lang
from trimtab.gateway.admission import Key, Keys, hash_of
from trimtab.gateway.running import Serving, run, say
from trimtab.gateway.setup import Setup, listening_on, load
from trimtab.gateway.usage import Record
from trimtab.gateway.workers import supervise

KEY_VARIABLE = "TRIMTAB_GATEWAY_KEY"


def start(setup: Setup, workers: int) -> int:
    """Serve to the end; 0 when told to stop."""
    config = load(setup)
    sockets = listening_on(config, shared=workers)
    host, port = sockets[0].getsockname()[:2]
    scheme = "https" if config.tls_certificate else "http"
    told = shown.serving(f"{scheme}://{host}:{port}", sorted(config.models), workers, lang())
    serving = lambda: Serving(setup, config, _keys(), _forget, say)  # noqa: E731
    if workers == 1:
        run(serving, sockets[0], lambda: print(told, flush=True))
        return 0
    supervise(
        sockets,
        lambda place: run(serving, place.listening, place.ready, place.parent),
        drain_s=config.drain,
        say=say,
        all_ready=lambda: print(told, flush=True),
    )
    return 0


def _keys() -> Keys:
    text = os.environ.get(KEY_VARIABLE, "")
    return Keys([(hash_of(text.encode()), Key("environment", KEY_VARIABLE))] if text else ())


def _forget(record: Record) -> None:
    """Without a store usage is kept nowhere."""
