"""A thread that asks one engine how it is: until it gave a token, while it serves, until its last request is done.

It measures and tells; what is to be done is the policy's. Asking is rare while all is well: a look at /health and
/metrics every few seconds, a token only where the counters leave doubt.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from trimtab.engine.vitals import Progress, read_progress
from trimtab.messages import msg
from trimtab.supervisor.happenings import Answered, Drained, Happening, Sign, Unwell, Well
from trimtab.supervisor.readiness import Health, Probe, Token

JOIN_S = 5.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How often and how long to ask, in seconds."""

    ready_s: float = 0.25  # between two looks before it is ready
    look_s: float = 10.0  # between two looks while all is well
    doubt_s: float = 2.0  # between two looks while it is not
    stall_s: float = 60.0  # requests run and nothing moves: ask for a token
    proof_s: float = 300.0  # nothing moves and nothing runs, as far as its metrics tell: ask for a token
    token_s: float = 120.0  # how long that token may take
    health_s: float = 5.0  # how long an answer at /health may take
    drain_s: float = 0.5  # between two looks at the running requests when it shall end


class Watch:
    """One engine's watch, from its launch to its end."""

    def __init__(self, probe: Probe, pace: Pace, mine: Callable[[], bool], tell: Callable[[Happening], None]) -> None:
        """`mine` says whether the engine itself listens on its port; `tell` is called in the watch's thread."""
        self._probe, self._pace, self._mine, self._teller = probe, pace, mine, tell
        self._over, self._wake, self._draining = threading.Event(), threading.Event(), threading.Event()
        self._moved_at = 0.0
        self._last: Progress | None = None
        self._unwell = self._silent = False
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def drain(self) -> None:
        """From now on wait for the running requests and say `Drained`."""
        self._draining.set()
        self._wake.set()

    def end(self) -> None:
        """No more questions. Returns when the thread is gone, which is soon: its server is."""
        self._over.set()
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(JOIN_S)  # a thread inside a C library must not see the interpreter end

    def _tell(self, happening: Happening) -> None:
        if not self._over.is_set():  # a late word must not be taken for one on the next start
            self._teller(happening)

    def _run(self) -> None:
        try:
            if self._until_ready():
                self._tell(Answered())
                self._while_serving()
            if self._draining.is_set():
                self._until_drained()
        finally:
            self._probe.close()

    def _until_ready(self) -> bool:
        while not self._over.wait(self._pace.ready_s):
            if self._probe.health() is Health.OK and self._mine() and self._probe.token() is Token.GIVEN:
                return True
        return False

    def _while_serving(self) -> None:
        self._moved_at = time.monotonic()
        pause = self._pace.look_s
        while not self._wake.wait(pause) and not self._over.is_set():
            well = self._look()
            if well and self._unwell:
                self._tell(Well())
                self._unwell = False
            pause = self._pace.look_s if well else self._pace.doubt_s

    def _look(self) -> bool:
        """One look; whether all is well. What is not is told."""
        health = self._probe.health()
        if health is Health.SILENT and not self._silent:
            self._silent = True  # once may be an engine that is ending, which the next look would not find
            return False
        self._silent = health is Health.SILENT
        if self._silent:
            self._ails(Unwell(Sign.SILENT, msg("does not answer at /health")))
            return False
        if health is Health.BROKEN:
            self._ails(Unwell(Sign.DEAD, msg("says at /health that its engine is dead")))
            return False
        return self._moves() or self._gives_a_token()

    def _ails(self, sign: Unwell) -> None:
        self._unwell = True
        self._tell(sign)

    def _moves(self) -> bool:
        """Whether its counters leave no doubt that it works."""
        now, seen = time.monotonic(), self._seen()
        if seen is None or seen != self._last:
            self._last = seen
            if seen is not None:
                self._moved_at = now
                return True
        return now - self._moved_at < self._patience()

    def _patience(self) -> float:
        """A server that does not count is asked as often as one that stands still."""
        return self._pace.proof_s if self._last is not None and not self._last.running else self._pace.stall_s

    def _gives_a_token(self) -> bool:
        still_s, running = time.monotonic() - self._moved_at, self._last.running if self._last is not None else 0
        if running:
            reason = msg("{running} requests run and nothing moved for {s:.0f} s", running=running, s=still_s)
            self._ails(Unwell(Sign.STALLED, reason))
        answer = self._probe.token(self._pace.token_s)
        seen = self._seen()
        if answer is Token.AWAITED and not self._over.is_set() and not _moved(self._last, seen):
            reason = msg(
                "answers at /health, but gave no token within {s:.0f} s, and nothing moved for {still:.0f} s",
                s=self._pace.token_s,
                still=time.monotonic() - self._moved_at,
            )
            self._ails(Unwell(Sign.HUNG, reason))
            return False
        self._last, self._moved_at = seen, time.monotonic()
        return True

    def _until_drained(self) -> None:
        while not self._over.is_set():
            seen = self._seen()
            if seen is None or not seen.running + seen.waiting:
                self._tell(Drained(known=seen is not None))
                return
            self._over.wait(self._pace.drain_s)

    def _seen(self) -> Progress | None:
        body = self._probe.metrics()
        return read_progress(body) if body is not None else None


def _moved(before: Progress | None, now: Progress | None) -> bool:
    """Whether work was done; the request that asks for a token is itself among those that run and wait."""
    return now is not None and (before is None or now.moves != before.moves)
