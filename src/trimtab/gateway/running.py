"""One process that serves: its loop, its signals, its reloads."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import msgspec
import uvloop

from trimtab.errors import HostError, TrimtabError, UsageError
from trimtab.gateway.access import AccessLog, Refusal
from trimtab.gateway.admin import BackEnds, BackEndState, Process, Reloaded
from trimtab.gateway.admission import Key, Keys, key_text
from trimtab.gateway.app import ClientBounds, serve
from trimtab.gateway.config import Config
from trimtab.gateway.fleet import Fleet
from trimtab.gateway.forwarded import Edge
from trimtab.gateway.front import Front
from trimtab.gateway.health import Health
from trimtab.gateway.inbound import Inbound
from trimtab.gateway.local import LocalServer, local_servers, with_local
from trimtab.gateway.metrics import Metrics, quoted
from trimtab.gateway.operations import Operations
from trimtab.gateway.provider_keys import StoredKeys, secrets_of
from trimtab.gateway.request import Answering, Refused, Request
from trimtab.gateway.routes import Routes
from trimtab.gateway.seat import Invite, Lodged, seat_of
from trimtab.gateway.secret import Secret
from trimtab.gateway.setup import Setup, load, renew, tls_of
from trimtab.gateway.store.database import open_store
from trimtab.gateway.store.providers import master_key, provider_key
from trimtab.gateway.store.sync import Sync
from trimtab.gateway.tally import Tally
from trimtab.gateway.tracing import LAST_S, Tracing
from trimtab.gateway.translate import between
from trimtab.gateway.usage import Record
from trimtab.messages import Message, msg

if TYPE_CHECKING:
    from trimtab.gateway.admin_app import Admin

COLLECT_AFTER = (2_000, 2, 2)  # new containers, then rounds: little is kept, so old ones are soon looked through
GIVE_WAY_S = 0.0002  # for which a thread that writes to the store may keep the loop from running: 5 ms by default
Say = Callable[[Message], None]
LOOK_S = 1.0  # between two looks at the servers of this host
ALIVE_S = 0.5  # between two words to the parent that the loop runs
TELL_S = 0.5  # between two looks of the workers at each other's numbers


class Part(msgspec.Struct, frozen=True):
    """Which of a gateway's workers one is; `numbers`: the directory where they tell each other their metrics."""

    worker: int = 0
    numbers: Path | None = None


class Found(msgspec.Struct, frozen=True):
    """A configuration and what it needs from files and store."""

    config: Config
    local: tuple[LocalServer, ...]
    keys: dict[str, Secret]
    stored: StoredKeys


class Serving:
    """The gateway of one process."""

    def __init__(
        self,
        setup: Setup,
        config: Config,
        say: Say,
        more_keys: Iterable[tuple[bytes, Key]] = (),
        part: Part | None = None,
        console: Invite | None = None,
    ) -> None:
        """HostError when the store cannot be reached, UsageError or HostError when a back end's key is not there."""
        self._setup, self._say = setup, say
        self.config = config
        self.fleet = Fleet(between)
        self._store = store = open_store(config.store, setup.default_store)
        keys = Keys(more_keys)
        self._tally = Tally(keys.by_id)
        self.sync = Sync(store, keys, self._tally, self._providers_changed, say)
        self.sync.load()
        if all(key.admin for key in keys.by_id.values()) and (part is None or part.worker == 0):
            say(msg("there is no key yet, so nobody is let in; make one: trimtab keys create"))
        self.metrics = Metrics(self._gauges, *((part.numbers, part.worker) if part else ()))
        self._access: AccessLog | None = None
        self._traces: Tracing | None = None
        self.front = Front(keys, self.fleet.routes, self._ended)
        self._part = part
        self._admin: Admin | None = None
        seat = seat_of(setup, self.front, lambda: self.config, self._states)
        self._console = Lodged(console, seat) if console is not None and config.admin and config.console else None
        self.operations = Operations(
            self.front, self.metrics, config, self._administer if config.admin else None,
            self._console.mounted if self._console is not None else None,
        )  # fmt: skip
        self.front.mounted, self.front.refused = self.operations, self._refused
        self._bounds = ClientBounds()
        self._tls = tls_of(config)
        self._stop, self._now = asyncio.Event(), asyncio.Event()
        self._local: tuple[LocalServer, ...] = ()
        self._told: tuple[str, ...] = tuple(sorted(config.models))  # the models that were named so far
        self._stored, self._stale = StoredKeys(self._read_stored), False  # a key that it holds is another one now
        self._renewing, self._renewals = asyncio.Lock(), set[asyncio.Task[None]]()
        self._unread = ""  # why what changed could not be read, as it was told last
        self._use(self._find(lambda: config))

    async def run(
        self, listening: socket.socket, ready: Callable[[], None], parent: int | None = None,
        alive: Callable[[], None] | None = None,
    ) -> None:  # fmt: skip
        """Serve until SIGTERM or SIGINT; then running requests are waited for, until a second one or the bound.

        `ready` is called once signals are minded and connections taken, `alive` every ALIVE_S from then on, to the end.
        `parent`: a pipe whose end is a signal too.
        """
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        loop.add_signal_handler(signal.SIGHUP, self.reload)
        if parent is not None:
            loop.add_reader(parent, self._orphaned, parent)
        self.sync.begin()
        health = Health(self.fleet, self._routed)
        minding = [loop.create_task(work) for work in (self._tell(), self._look(), health.run(), self._load_admin())]
        served = loop.create_task(serve(self.front, listening, self._stop, self._bounds, tls=self._tls))
        ready()
        saying = loop.create_task(_say_alive(alive)) if alive is not None else None
        try:
            await self._until_ended(served)
        finally:
            for task in (*minding, *self._renewals):
                task.cancel()
            await self.sync.end()
            self.metrics.write()
            if self._admin is not None:
                self._admin.close()
            if self._console is not None:
                self._console.close()
            if self._access is not None:
                self._access.close()
            if self._traces is not None:
                self._traces.close(LAST_S)
            if saying is not None:
                saying.cancel()
        if self.sync.health.requests_lost:
            self._say(msg("the usage of {n} requests is lost: the store could not be reached",
                          n=self.sync.health.requests_lost))  # fmt: skip

    async def _until_ended(self, served: asyncio.Task[None]) -> None:
        loop = asyncio.get_running_loop()
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

    async def _tell(self) -> None:
        while True:
            await asyncio.sleep(TELL_S)
            self.metrics.write()

    async def _look(self) -> None:
        """Servers of this host come and go; a provider's key that could not be read is tried again."""
        while True:
            await asyncio.sleep(LOOK_S)
            if self._stale or (self.config.local and local_servers(self._setup.state_dir) != self._local):
                await self._renew()

    async def _renew(self) -> None:
        """Find anew what the configuration in force needs; what cannot be had leaves everything as it is."""
        try:
            await self._use_found(lambda: self.config)
        except TrimtabError as error:
            if str(error.message) != self._unread:
                self._say(msg("not reloaded: {why}", why=error.message))
            self._unread = str(error.message)
        else:
            self._unread = ""

    async def _use_found(self, config: Callable[[], Config]) -> None:
        """Files and the store are read in a thread: one that does not answer must not keep requests waiting."""
        async with self._renewing:
            self._use(await asyncio.to_thread(self._find, config))

    def _begin(self, renewal: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(renewal)
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)

    def _routed(self, routes: Routes) -> None:
        """Other models than before are told, by one of the workers."""
        self.front.routes = routes
        if routes.names != self._told:
            self._told = routes.names
            if self._part is None or self._part.worker == 0:
                self._say(msg("models: {names}", names=", ".join(routes.names) or msg("none")))

    def stop(self) -> None:
        """The first time: drain. The second: end now."""
        if self._stop.is_set():
            self._now.set()
        self.operations.draining = True
        self._stop.set()

    def _orphaned(self, parent: int) -> None:
        asyncio.get_running_loop().remove_reader(parent)
        self.stop()

    def reload(self) -> None:
        """Read the configuration again; while it has faults the former stays in force."""
        self._begin(self._reload())

    async def _reload(self) -> None:
        try:
            await self._use_found(partial(load, self._setup, listening=True))
        except TrimtabError as error:
            self._say(msg("not reloaded: {why}", why=error.message))
        else:
            self._say(msg("reloaded: {n} models", n=len(self.front.routes.names)))

    async def _load_admin(self) -> None:
        """What the admin API needs takes a tenth of a second to load: it is done once requests are taken."""
        await asyncio.to_thread(import_module, "trimtab.gateway.admin_app")

    def _administer(self, request: Request, client: Inbound) -> Answering | None:
        self.front.keys.find_admin(key_text(request.headers))
        if self._admin is None:
            from trimtab.gateway.admin_app import Admin

            opened = partial(open_store, self.config.store, self._setup.default_store)
            self._admin = Admin(opened, Process(self._states, self._asked))
        return self._admin.mounted(request, client)

    async def _asked(self) -> Reloaded:
        """Reload as the admin API asks: a fault is its answer. Where there are workers their parent tells them all."""
        config = await asyncio.to_thread(load, self._setup, listening=True)
        if self._part is None:
            await self._use_found(lambda: config)
        else:
            os.kill(os.getppid(), signal.SIGHUP)
        return Reloaded(sorted({*config.models, *self.front.routes.names}))

    def _states(self) -> BackEnds:
        now = time.monotonic()
        served: dict[str, set[str]] = {}
        for name in self.front.routes.names:
            route = self.front.routes.find(name)
            for target in (t for level in route.levels[:1] for t in level) if route is not None else ():
                served.setdefault(target.back_end.name, set()).add(name)
        return BackEnds(
            [
                BackEndState(
                    name, back_end.kind, self.fleet.configs[name].url, back_end.ready(now), back_end.healthy,
                    back_end.failures, max(0.0, back_end.open_until - now), back_end.outstanding,
                    sorted(served.get(name, ())),
                )
                for name, back_end in self.fleet.back_ends.items()
            ]
        )  # fmt: skip

    def _providers_changed(self) -> None:
        """A provider's key in the store is another one."""
        if any(back_end.key is not None and back_end.key.stored for back_end in self.config.back_ends.values()):
            self._stale = True
            self._begin(self._renew())

    def _read_stored(self, name: str) -> Secret:
        return provider_key(self._store, name, partial(master_key, self._setup.master_file))

    def _find(self, read: Callable[[], Config]) -> Found:
        """UsageError or HostError when the configuration has faults or a key cannot be had."""
        config = read()
        local = local_servers(self._setup.state_dir) if config.local else ()
        stored = self._stored
        if self._stale:
            self._stale, stored = False, StoredKeys(self._read_stored)
        try:
            return Found(config, local, secrets_of(config, stored), stored)
        except HostError:
            self._stale = self._stale or stored is not self._stored
            raise
        except UsageError:
            self._stored = stored  # one is not there any more: a later reload is to say so, too
            raise

    def _use(self, found: Found) -> None:
        config, self._stored = found.config, found.stored
        self._log_to(config.access_log)  # first: where it cannot be opened nothing else changes
        former, self._local = self._local, found.local
        whole = with_local(config, self._local)
        keys = found.keys | {s.name: s.key for s in self._local if s.name not in config.back_ends}
        self.fleet.apply(whole, keys)
        for server in self._local:
            if server.name not in config.back_ends and server not in former:  # later it tells its models itself
                self.fleet.learn(server.name, {model: {} for model in server.models})
        self._routed(self.fleet.routes)
        self._tally.price({name: model.price for name, model in config.models.items() if model.price is not None})
        if self._tls is not None and config.tls_certificate is not None:
            renew(self._tls, config)
        self.front.before = Edge(config.trusted_proxies, config.cors) if config.trusted_proxies or config.cors else None
        self._trace_to(config.otlp)
        self.config = self.operations.config = config
        bounds = self._bounds
        bounds.request_s, bounds.idle_s = config.request_timeout, config.idle_timeout
        bounds.max_body, bounds.max_head = config.max_body, config.max_head

    def _log_to(self, file: str | None) -> None:
        if self._access is not None and file == self._access.file:
            self._access.reopen()
            return
        former, self._access = self._access, AccessLog(file, self._say) if file is not None else None
        if former is not None:
            Thread(target=former.close, name="access-log-end", daemon=True).start()  # its disk may hang

    def _trace_to(self, endpoint: str | None) -> None:
        if endpoint == (self._traces.endpoint if self._traces is not None else None):
            return
        former, self._traces = self._traces, Tracing(endpoint) if endpoint is not None else None
        if former is not None:
            former.close()

    def _ended(self, record: Record) -> None:
        self._tally(record)
        self.metrics.count(record)
        if self._access is not None:
            self._access.add(record)
        if self._traces is not None:
            self._traces.add(record)

    def _refused(self, request: Request, client: Inbound, refused: Refused) -> None:
        self.metrics.refuse(refused.status, refused.code)
        if self._access is not None:
            path, id = request.path.decode("latin-1"), request.id.decode("latin-1")
            self._access.add(Refusal(path, refused.status, refused.code, id, client.peer))

    def _gauges(self) -> dict[str, float]:
        now = time.monotonic()
        found: dict[str, float] = {"requests_in_flight": len(self.front.live)}
        health = self.sync.health
        found |= {"store_reachable": float(health.reachable), "usage_rows_kept": float(health.rows_kept)}
        for back_end in self.fleet.back_ends.values():
            found[f"back_end_outstanding{{back_end={quoted(back_end.name)}}}"] = back_end.outstanding
            found[f"back_end_ready{{back_end={quoted(back_end.name)}}}"] = float(back_end.ready(now))
        return found


async def _say_alive(alive: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(ALIVE_S)
        alive()


def run(
    serving: Callable[[], Serving], listening: socket.socket, ready: Callable[[], None], parent: int | None = None,
    alive: Callable[[], None] | None = None,
) -> None:  # fmt: skip
    """Run one process's gateway to its end; `serving` makes it inside the loop."""

    async def main() -> None:
        made = serving()
        gc.collect()
        gc.freeze()  # what is there from the start stays: it need not be looked through again and again
        gc.set_threshold(*COLLECT_AFTER)
        sys.setswitchinterval(GIVE_WAY_S)
        await made.run(listening, ready, parent, alive)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


def say(line: Message) -> None:
    """One line of the gateway's own log, on stderr."""
    print(f"trimtab gateway: {line}", file=sys.stderr, flush=True)
