"""From a checked configuration to a gateway that serves: sockets, the first keys, processes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from trimtab.cli.format import gateway as shown
from trimtab.cli.settings import lang
from trimtab.gateway.admission import Key, hash_of
from trimtab.gateway.config import Config
from trimtab.gateway.running import Part, Serving, run, say
from trimtab.gateway.seat import Lodger, Seat
from trimtab.gateway.secret import Secret
from trimtab.gateway.setup import Setup, listening_on, load
from trimtab.gateway.store.database import open_store
from trimtab.gateway.store.logins import make_link
from trimtab.gateway.workers import Place, supervise

KEY_VARIABLE, ADMIN_VARIABLE = "TRIMTAB_GATEWAY_KEY", "TRIMTAB_ADMIN_KEY"
LIFELINE_VARIABLE = "TRIMTAB_GATEWAY_LIFELINE"  # a pipe of whoever started the gateway: it ends when the pipe does


def start(setup: Setup, workers: int) -> int:
    """Serve to the end; 0 when told to stop."""
    config = load(setup)
    sockets = listening_on(config, shared=workers)
    host, port = sockets[0].getsockname()[:2]
    scheme = "https" if config.tls_certificate else "http"
    link = _link(config, setup)
    told = shown.serving(f"{scheme}://{host}:{port}", sorted(config.models), workers, lang(), link)
    lifeline = os.environ.pop(LIFELINE_VARIABLE, None)
    if workers == 1 and lifeline is None:
        served = lambda: Serving(setup, config, say, _first_keys(), console=_console)  # noqa: E731
        run(served, sockets[0], lambda: print(told, flush=True))
        return 0
    numbers = Path(tempfile.mkdtemp(prefix="trimtab-gateway-"))
    try:
        supervise(
            sockets, lambda place: _work(setup, config, place, numbers), drain_s=config.drain, say=say,
            all_ready=lambda: print(told, flush=True), lifeline=int(lifeline) if lifeline is not None else None,
        )  # fmt: skip
    finally:
        shutil.rmtree(numbers, ignore_errors=True)
    return 0


def _work(setup: Setup, config: Config, place: Place, numbers: Path) -> None:
    part = Part(place.number, numbers)
    served = lambda: Serving(setup, config, say, _first_keys(), part, _console)  # noqa: E731
    run(served, place.listening, place.ready, place.parent, place.alive)


def _console(seat: Seat) -> Lodger:
    from trimtab.console.app import Console  # brings templates and pages, which no request of a model needs

    return Console(seat)


def _link(config: Config, setup: Setup) -> Secret | None:
    """The secret of a link that opens the console once. The store is made and upgraded here, before the workers."""
    store = open_store(config.store, setup.default_store)
    try:
        return make_link(store) if config.admin and config.console else None
    finally:
        store.close()


def _first_keys() -> Iterator[tuple[bytes, Key]]:
    """Keys that the environment gives, beside those of the store."""
    for id, variable, admin in (("environment", KEY_VARIABLE, False), ("admin", ADMIN_VARIABLE, True)):
        if text := os.environ.get(variable, "").strip():
            yield hash_of(text.encode()), Key(id, f"${variable}", admin=admin)
