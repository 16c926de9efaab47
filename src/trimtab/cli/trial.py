"""One trial of a tuning: start a launch under supervision, verify it, measure it in rounds, end it; nothing is left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from trimtab.bench.load import Load, Shape
from trimtab.bench.stats import Targets
from trimtab.bench.tune import Measured, More
from trimtab.bench.tuning.objective import Round, too_short
from trimtab.bench.tuning.trials import said
from trimtab.cli.cards import Cards
from trimtab.cli.examination import Doctor
from trimtab.cli.keeping import Keep
from trimtab.cli.launch import Launch
from trimtab.cli.settings import dirs
from trimtab.cli.up import Place, cards_for, new_key, spec_of
from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError, TrimtabError
from trimtab.messages import Message, msg
from trimtab.supervisor import registry
from trimtab.supervisor.apart import call_apart
from trimtab.supervisor.launching import Callbacks, Event, Start, StateChanged
from trimtab.supervisor.states import STARTUP, State
from trimtab.supervisor.stopping import Stop
from trimtab.supervisor.supervisor import supervise

END_S = 5.0
"""Until an engine whose clients saw it fail is taken to live: its own end tells more than theirs."""
ROUND_SLACK_S = 300.0  # for what runs when a round's time is over, and for writing its prompts
VERIFIED_AT_ONCE = 8

Tell = Callable[[Message], None]


class Task(msgspec.Struct, frozen=True):
    """What every trial does with its server. `dummy`: random weights, of whose answers nothing is expected."""

    shape: Shape
    load: Load
    seed: int
    targets: Targets | None
    context: int | None
    dummy: bool = False


class Trying:
    """Starts one launch and measures it; `stop` ends it early, as does the end of `left_s` seconds."""

    def __init__(self, launch: Launch, place: Place, task: Task, tell: Tell) -> None:
        self._launch, self._place, self._task, self._tell = launch, place, task, tell
        self._keep = Keep(restart=False, max_restarts=0, drain_s=0.0)
        self._rounds: list[Round] = []
        self._trouble: Message | None = None
        self._over = threading.Event()  # the engine serves no more
        self._stop = Stop()
        self._cut = False

    def run(self, more: More, outer: Stop, left_s: float) -> Measured:
        """Blocks until all of it has ended and its cards are free again. HostError where they are not."""
        outer.listen(self._end_early)
        timer = threading.Timer(left_s, self._end_early, (0,))
        timer.daemon = True
        timer.start()
        began, started = time.monotonic(), datetime.now(UTC).isoformat(timespec="seconds")
        try:
            came = self._supervised(more)
        finally:
            timer.cancel()
        return msgspec.structs.replace(came, started=started, took_s=round(time.monotonic() - began, 2))

    def _end_early(self, times: int) -> None:
        self._cut = True
        self._stop.request()

    def _supervised(self, more: More) -> Measured:
        launch, place = self._launch, self._place
        wish = registry.Wish(
            model=f"{launch.served_model}-tune", host=place.host, port=place.port, name=place.name,
            api_key=new_key(), choose=lambda claimed: cards_for(launch, place, claimed),
        )  # fmt: skip
        with registry.claimed(dirs().state, wish) as record:
            cards = Cards(record.devices, launch)
            doctor = Doctor(launch, self._keep, record.devices)
            callbacks = Callbacks(
                observer=self._seen,
                when_ready=lambda found, start: self._measure(found, start, more),
                diagnose=doctor,
            )
            spec = spec_of(launch, record, self._keep)
            outcome = supervise(spec, self._stop, callbacks)
            taken = cards.settle(spec.argv)
        if taken is not None:
            raise HostError(msg("the cards are not free after a trial: {why}", why=taken))
        if outcome.failed:
            cause = outcome.diagnosis.told or msg("the engine {reason}", reason=outcome.reason)
            return Measured(kind="failed", cause=said(cause), ready_s=outcome.ready_after_s)
        if self._cut:
            return Measured(kind="cut", rounds=tuple(self._rounds), ready_s=outcome.ready_after_s)
        if self._trouble is not None:
            return Measured(kind="failed", cause=said(self._trouble), ready_s=outcome.ready_after_s)
        return Measured(kind="measured", rounds=tuple(self._rounds), ready_s=outcome.ready_after_s)

    def _seen(self, event: Event) -> None:
        if isinstance(event, StateChanged) and event.state not in (*STARTUP, State.READY, State.DEGRADED):
            self._over.set()

    def _measure(self, record: ServerRecord, start: Start, more: More) -> None:
        """In a thread of its own: verify, then round after round; then the engine may end."""
        try:
            self._verify(record)
            while self._stop.times == 0 and more(self._rounds):
                self._rounds.append(self._round(record))
        except (TrimtabError, OSError) as error:
            self._trouble = error.message if isinstance(error, TrimtabError) else msg("{why}", why=error)
            self._over.wait(END_S)
        finally:
            self._stop.request()

    def _verify(self, record: ServerRecord) -> None:
        task = self._task
        context = min(task.context or 2**31, task.shape.input.low + task.shape.output.low)
        at_once = min(VERIFIED_AT_ONCE, task.load.concurrency)
        asked = (record.base_url, record.api_key, record.models[0], context, at_once, record.log, task.dummy)
        failed: Message | None = call_apart("trimtab.cli.trial_apart:verified", *asked, bound_s=ROUND_SLACK_S)
        if failed is not None:
            self._trouble = failed
            raise HostError(failed)

    def _round(self, record: ServerRecord) -> Round:
        task, number = self._task, len(self._rounds)
        asked = (record.base_url, record.api_key, record.models[0], task, number)
        bound = (task.load.duration_s or 0.0) + ROUND_SLACK_S
        found = call_apart("trimtab.cli.trial_apart:measured", *asked, bound_s=bound)
        assert isinstance(found, Round)
        self._tell(
            msg("round {n}: {tokens:,.0f} output tokens/s, {requests:.2f} requests/s", n=number + 1,
                tokens=found.output_tokens_s, requests=found.requests_s)
        )  # fmt: skip
        short = too_short(found)
        if short is not None and number == 0:
            self._tell(short)
        return found
