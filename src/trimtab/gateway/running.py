"""One process that serves: its loop, its signals, its reloads."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import Callable

import uvloop

from trimtab.errors import TrimtabError
from trimtab.gateway.admission import Keys
from trimtab.gateway.app import serve
from trimtab.gateway.config import Config
from trimtab.gateway.fleet import Fleet
from trimtab.gateway.front import Front
from trimtab.gateway.provider_keys import secrets_of
from trimtab.gateway.setup import Setup, load
from trimtab.gateway.usage import Ledger
from trimtab.messages import Message, msg

Say = Callable[[Message], None]


class Serving:
    """The gateway of one process."""

    def __init__(self, setup: Setup, config: Config, keys: Keys, ledger: Ledger, say: Say) -> None:
        self._setup, self._say = setup, say
        self.config = config
        self.fleet = Fleet()
        self.front = Front(keys, self.fleet.routes, ledger)
        self._stop, self._now = asyncio.Event(), asyncio.Event()
        self._use(config)

    async def run(self, listening: socket.socket, ready: Callable[[], None], parent: int | None = None) -> None:
        """Serve until SIGTERM or SIGINT; then running requests are waited for, until a second one or the bound.

        `ready` is called once signals are minded and connections taken. `parent`: a pipe whose end is a signal too.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        if parent is not None:
            loop.add_reader(parent, self._orphaned, parent)
        served = loop.create_task(serve(self.front, listening, self._stop))
        ready()
        ended = loop.create_task(self._now.wait())
        try:
            await asyncio.wait({served, loop.create_task(self._stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({served, ended}, timeout=self.config.drain, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ended.cancel()
        if not served.done():
            self._say(msg("ended with {n} requests unanswered", n=len(self.front.live)))
            served.cancel()
        await asyncio.wait({served})
        if not served.cancelled():
            served.result()

    def stop(self) -> None:
        """The first time: drain. The second: end now."""
        if self._stop.is_set():
            self._now.set()
        self._stop.set()

    def _orphaned(self, parent: int) -> None:
        asyncio.get_running_loop().remove_reader(parent)
        self.stop()

    def reload(self) -> None:
        """Read the configuration again; while it has faults the former stays in force."""
        try:
            self._use(load(self._setup, listening=True))
        except TrimtabError as error:
            self._say(msg("not reloaded: {why}", why=error.message))
        else:
            self._say(msg("reloaded: {n} models", n=len(self.front.routes.names)))

    def _use(self, config: Config) -> None:
        self.front.routes = self.fleet.apply(config, secrets_of(config, _no_store))
        self.config = config


def _no_store(name: str) -> str:
    return ""


def run(
    serving: Callable[[], Serving], listening: socket.socket, ready: Callable[[], None], parent: int | None = None
) -> None:
    """Run one process's gateway to its end; `serving` makes it inside the loop."""

    async def main() -> None:
        await serving().run(listening, ready, parent)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def say(line: Message) -> None:
    """One line of the gateway's own log, on stderr."""
    print(f"trimtab gateway: {line}", file=sys.stderr, flush=True)
