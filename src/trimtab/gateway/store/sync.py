"""Keep memory and store in step: twice a second what was used goes down, and what changed comes up.

The event loop's thread owns keys and tally; a thread of its own talks to the store. They hand each other values: a
`Tick` down, an `Outcome` up. One mechanism serves the workers of a gateway and several gateways.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import msgspec

from trimtab.errors import HostError
from trimtab.gateway.admission import Key, Keys, Share, Spent
from trimtab.gateway.store import batches
from trimtab.gateway.store.batches import Batch
from trimtab.gateway.store.changes import Changes, KeyChange, changes, spent_now
from trimtab.gateway.store.database import Store
from trimtab.gateway.store.tidying import tidy
from trimtab.gateway.tally import Tally
from trimtab.messages import Message, msg

TICK_S = 0.4  # two of them and what the store takes are less than a second
GREET_S = 1.0  # while others are there
SILENT_S = 5.0  # after which a worker that said nothing counts as gone
TIDY_S = 600.0
MOST_ROWS = 2000  # in a batch: no transaction keeps the others waiting for long
LAST_S = 8.0  # that the end waits for a store which cannot be reached


class Tick(msgspec.Struct, frozen=True):
    """What the store is told, and from which version on it is asked."""

    since: int
    now: float
    batch: Batch | None
    shares: dict[str, Share]
    greet: bool
    whole_spent: bool  # another day began: what was spent is asked for of all keys
    tidy: bool


class Outcome(msgspec.Struct, frozen=True):
    """What the store answered."""

    changes: Changes
    spent: dict[str, Spent] | None


class Health(msgspec.Struct):
    """How it stands with the store; for /readyz, metrics and whoever asks."""

    reachable: bool = True
    since: float = 0.0  # when it was lost
    reason: HostError | None = None
    rows_kept: int = 0  # of usage, in memory alone
    requests_lost: int = 0  # at the end, because the store could not be reached


class Sync:
    """One worker's tie to the store. `begin` before the first request, `end` after the last one."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        tally: Tally,
        on_providers: Callable[[], None] = lambda: None,
        say: Callable[[Message], None] = lambda _: None,
    ) -> None:
        """`on_providers`: a provider's key changed. `say` is told when the store is lost and when it is back."""
        self.worker = secrets.token_hex(8)
        self.health = Health()
        self._store, self._keys, self._tally, self._on_providers = store, keys, tally, on_providers
        self._say = say
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._thread = ThreadPoolExecutor(1, "trimtab-store")
        self._since = self._number = 0
        self._flying: Batch | None = None  # sent, and not known to have come
        self._told: dict[str, Share] = {}  # of the tick that is under way
        self._others: dict[tuple[str, str], Share] = {}
        self._heard: dict[str, float] = {}  # when each other worker last said that it is there
        self._greeted = self._tidied = time.monotonic()
        self._day = ""
        self._ending = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Read all keys. HostError when the store cannot be reached: without keys nobody can be let in."""
        now = time.time()
        with self._store.writing() as to:
            batches.enrol(to, self.worker, self._name)
        self._day = batches.periods(now)[0]
        self._take(Outcome(changes(self._store, 0, now, self.worker), None), None)

    def begin(self) -> None:
        """Go on in the running loop until `end`."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def end(self) -> None:
        """Write the last of it down; what the store would not take within LAST_S is counted as lost."""
        self._ending.set()
        end = time.monotonic() + LAST_S
        if self._running is not None:
            await self._running
        await self._step(last=True)
        while (self._flying is not None or len(self._tally)) and time.monotonic() < end:
            if not self.health.reachable:
                await asyncio.sleep(TICK_S)
            await self._step(last=True)
        rows = [*self._tally.take().values(), *(self._flying.rows.values() if self._flying else ())]
        self.health.requests_lost = int(sum(row[0] for row in rows))
        await asyncio.get_running_loop().run_in_executor(self._thread, self._part, self.health.requests_lost == 0)
        self._thread.shutdown(wait=True)

    async def _run(self) -> None:
        while not self._ending.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ending.wait(), TICK_S)
            await self._step()

    async def _step(self, last: bool = False) -> None:
        """One exchange with the store. What was sent and not answered is sent again under the same number."""
        now = time.time()
        self._tally.turn(now)
        self._tally.bound()
        tick = self._tick(now, last)
        try:
            outcome = await asyncio.get_running_loop().run_in_executor(self._thread, self._exchange, tick)
        except HostError as error:
            self._lost(error)
        else:
            self._back()
            self._take(outcome, tick.batch)
        self.health.rows_kept = len(self._tally) + (len(self._flying.rows) if self._flying else 0)

    def _tick(self, now: float, last: bool) -> Tick:
        if self._flying is None and len(self._tally):
            self._number += 1
            self._flying = Batch(self._number, self._tally.take(MOST_ROWS))
        moment, alone = time.monotonic(), not self._present()
        shares = {} if alone and not last else self._changed_shares()
        self._told = shares
        greet = not alone and moment - self._greeted >= GREET_S
        tidied = moment - self._tidied >= TIDY_S
        self._greeted = moment if greet else self._greeted
        self._tidied = moment if tidied else self._tidied
        turned = batches.periods(now)[0] != self._day
        return Tick(self._since, now, self._flying, shares, greet or bool(shares), turned, tidied)

    def _changed_shares(self) -> dict[str, Share]:
        found = {}
        for id, key in self._keys.by_id.items():
            if key.changed:
                key.changed = False
                found[id] = key.share()
        return found

    def _exchange(self, tick: Tick) -> Outcome:
        """In the store's thread."""
        store, worker = self._store, self.worker
        if tick.batch is not None or tick.shares or tick.greet:
            with store.writing() as to:
                if tick.batch is not None:
                    batches.write(to, worker, self._name, tick.batch)
                batches.tell(to, worker, tick.shares)
                if tick.greet:
                    batches.greet(to, worker)
        if tick.tidy:
            tidy(store, tick.now)
        found = changes(store, tick.since, tick.now, worker)
        return Outcome(found, spent_now(store, tick.now) if tick.whole_spent else None)

    def _part(self, gladly: bool) -> None:
        """In the store's thread, at the end: what this worker counted stays for the others, the worker itself goes."""
        if gladly:
            with suppress(HostError), self._store.writing() as to:  # else the others find it silent
                batches.leave(to, self.worker)
        self._store.close()

    def _lost(self, error: HostError) -> None:
        health = self.health
        if health.reachable:
            health.reachable, health.since = False, time.time()
            self._say(msg("{why}; requests go on, usage is kept in memory until it is back", why=error.message))
        health.reason = error
        for id in self._told:
            self._keys.by_id[id].changed = True

    def _back(self) -> None:
        if not self.health.reachable:
            away = time.time() - self.health.since
            self._say(msg("the store is back after {seconds:.0f} s", seconds=away))
            self.health.reachable, self.health.reason = True, None

    def _take(self, outcome: Outcome, sent: Batch | None) -> None:
        found = outcome.changes
        self._since = found.version
        if sent is not None:
            self._flying = None
            for key in self._spenders(sent):
                key.land()
        for change in found.keys:
            self._know(change)
        if outcome.spent is not None:
            self._day = batches.periods(time.time())[0]
            for id, key in self._keys.by_id.items():
                key.book(outcome.spent.get(id, Spent()))
        else:
            for id, spent in found.spent.items():
                if id in self._keys.by_id:
                    self._keys.by_id[id].book(spent)
        self._hear(found)
        if found.providers and self._running is not None:
            self._on_providers()

    def _spenders(self, batch: Batch) -> list[Key]:
        ids = {key for _, key, *_ in batch.rows}
        return [self._keys.by_id[id] for id in ids if id in self._keys.by_id]

    def _know(self, change: KeyChange) -> None:
        key = self._keys.by_id.get(change.id)
        if key is None:
            key = Key(change.id)
        key.label, key.owner, key.admin = change.label, change.owner, change.admin
        key.expires, key.revoked = change.expires, change.revoked
        key.allow(change.limits)
        self._keys.put(key, change.texts)

    def _present(self) -> set[str]:
        now = time.monotonic()
        return {worker for worker, heard in self._heard.items() if now - heard < SILENT_S}

    def _hear(self, found: Changes) -> None:
        """Rates count whoever counted them; what runs at this moment, only of workers that are still there."""
        now, minute = time.monotonic(), int(time.time()) // 60
        for worker in (*found.workers, *(worker for worker, _ in found.shares)):
            self._heard[worker] = now
        self._others.update(found.shares)
        if not self._others:
            return
        present = self._present()
        by_key: dict[str, list[Share]] = {}
        for (worker, id), share in list(self._others.items()):
            if worker not in present:
                share = msgspec.structs.replace(share, parallel=0, long={})
                if share.minute < minute - 1:
                    del self._others[worker, id]
            by_key.setdefault(id, []).append(share)
        for id, shares in by_key.items():
            if id in self._keys.by_id:
                self._keys.by_id[id].hear(minute, shares)
