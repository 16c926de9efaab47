"""Run a load against a server: closed or open loop, conversations in order, the server's own counters beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from typing import Any

import msgspec

from trimtab.bench.endpoint import Server
from trimtab.bench.gauge import Gauge
from trimtab.bench.load import Load, Shape
from trimtab.bench.stats import CUT, Timed
from trimtab.bench.stopping import stop_at_signals, unless
from trimtab.bench.texts import Sized, content_of
from trimtab.bench.wire import Address, Answer, Bounds, send
from trimtab.engine.bottleneck import Look

LOOK_S = 1.0


class Way(msgspec.Struct, frozen=True):
    """How the server is asked."""

    server: Server
    address: Address
    bounds: Bounds
    exact_output: bool  # vLLM's ignore_eos: every answer has the length that was asked for
    sampling: dict[str, Any] = {}


class Outcome(msgspec.Struct, frozen=True):
    """What came of a run. `span_s`: from the first request sent to the end of the last answer.

    `looks` are at seconds after the start of the run.
    """

    rows: tuple[Timed, ...]
    span_s: float
    looks: tuple[Look, ...]
    interrupted: bool
    notes: dict[str, int] = {}  # what the server says of itself that does not fit, and of how many requests


Progress = Callable[[int, int, int], None]  # done, failed, running


class _Run:
    def __init__(self, way: Way, shape: Shape, load: Load, progress: Progress | None, stop: asyncio.Event) -> None:
        self._way, self._shape, self._load, self._progress = way, shape, load, progress
        self.rows: list[Timed] = []
        self._began = time.perf_counter()
        self._running = self._failed = 0
        self.ended = self._began
        self.stop = stop
        self._until: float | None = None  # in a closed loop of so many seconds
        self.notes: dict[str, int] = {}

    def restart(self) -> None:
        """The clock starts here."""
        self._began = self.ended = time.perf_counter()
        if self._load.duration_s is not None and self._load.rate is None:
            self._until = self._began + self._load.duration_s

    @property
    def span_s(self) -> float:
        return self.ended - self._began

    def placed(self, look: Look) -> Look:
        """`look` at seconds after the start of the run; below zero while it warmed up."""
        return Look(look.at - self._began, look.vitals)

    async def converse(self, conversation: Sequence[Sized], due_s: float | None, *, counted: bool = True) -> None:
        """Ask the turns of one conversation, each with the answers before it."""
        history: list[dict[str, Any]] = []
        for turn, sized in enumerate(conversation):
            history.append({"role": "user", "content": content_of(sized, self._shape)})
            answer = await self._ask(sized, history, due_s if turn == 0 else None, counted=counted)
            if answer.trouble is not None or self.stop.is_set():
                return
            history.append({"role": "assistant", "content": answer.text})

    async def _ask(self, sized: Sized, history: list[dict[str, Any]], due_s: float | None, *, counted: bool) -> Answer:
        self._running += 1
        try:
            answer = await send(
                self._way.address, self._body(sized, history), self._way.bounds, self._until if counted else None
            )
        finally:
            self._running -= 1
        if counted:
            self.ended = time.perf_counter()
            row = _row(sized, answer, self._began, due_s)
            self.rows.append(row)
            self._failed += row.trouble is not None and row.trouble != CUT
            self._note(sized, answer)
        if self._progress is not None:
            self._progress(len(self.rows), self._failed, self._running)
        return answer

    def _body(self, sized: Sized, history: list[dict[str, Any]]) -> dict[str, Any]:
        way = self._way
        body = way.server.body(sized.text, sized.wanted.output_tokens, stream=True) | way.sampling
        if way.server.chat:
            body["messages"] = history
        if way.exact_output:
            body["ignore_eos"] = True
        return body

    def _note(self, sized: Sized, answer: Answer) -> None:
        usage = answer.usage
        if answer.trouble is not None:
            return
        if not answer.streamed:
            self._count("not streamed")
        if usage is None:
            self._count("no usage")
        elif not answer.text and not sized.wanted.turn:
            self._count("no text")
        elif usage.completion_tokens < len(answer.times) - 1 and answer.streamed:
            self._count("fewer tokens than chunks")
        elif usage.completion_tokens > sized.wanted.output_tokens:
            self._count("more tokens than asked")
        elif self._strange_prompt(sized, usage.prompt_tokens):
            self._count("prompt tokens differ")

    def _strange_prompt(self, sized: Sized, told: int) -> bool:
        plain = sized.exact and sized.wanted.turn == 0 and not self._shape.images
        return plain and abs(told - sized.tokens) > max(8, 0.02 * sized.tokens)

    def _count(self, note: str) -> None:
        self.notes[note] = self.notes.get(note, 0) + 1


def _row(sized: Sized, answer: Answer, began: float, due_s: float | None) -> Timed:
    usage, times = answer.usage, answer.times
    sent = answer.sent - began
    return Timed(
        sized.wanted.id,
        sent,
        max(0.0, sent - answer.connect_s - due_s) if due_s is not None else 0.0,
        answer.connect_s,
        usage.prompt_tokens if usage is not None else sized.tokens,
        usage.completion_tokens if usage is not None else len(times),
        usage is not None,
        times[0] if times and answer.streamed else None,
        times[-1] if times else None,
        tuple(b - a for a, b in pairwise(times)),
        answer.status,
        answer.trouble,
    )


async def run(
    way: Way, shape: Shape, load: Load, requests: Sequence[Sized], *, gauge: Gauge | None, progress: Progress | None
) -> Outcome:
    """Ask for all of `requests`; Ctrl-C or SIGTERM ends it with what there is."""
    with stop_at_signals() as stop:
        state = _Run(way, shape, load, progress, stop)
        interrupted, looks = await _watched(state, load, requests, gauge)
    rows = tuple(sorted(state.rows, key=lambda r: r.id))
    seen = tuple(sorted((state.placed(one) for one in looks), key=lambda one: one.at))
    return Outcome(rows, state.span_s, seen, interrupted, state.notes)


async def _watched(
    state: _Run, load: Load, requests: Sequence[Sized], gauge: Gauge | None
) -> tuple[bool, list[Look]]:  # fmt: skip
    """Warm up and run, the server's counters beside; whether it was stopped. Looks are by perf_counter, which no step
    of the clock moves."""
    conversations = [list(group) for _, group in groupby(requests, key=lambda s: s.wanted.conversation)]
    looks: list[Look] = []
    watching = asyncio.create_task(_watch(gauge, looks)) if gauge is not None else None
    try:
        interrupted = await unless(state.stop, _warm_up_and_ask(state, load, conversations))
        if gauge is not None and not interrupted:
            looks.append(await _look(gauge))  # a short run has a look at its end too
    finally:
        if watching is not None:
            watching.cancel()
            with suppress(asyncio.CancelledError):
                await watching
    return interrupted, looks


async def _warm_up_and_ask(state: _Run, load: Load, conversations: Sequence[Sequence[Sized]]) -> None:
    warm, counted = conversations[: load.warmup], conversations[load.warmup :]
    await _all(state, [state.converse(c, None, counted=False) for c in warm])
    state.restart()
    first = counted[0][0].wanted.at_s if counted else None
    await (_closed(state, load, counted) if first is None else _open(state, load, counted))


async def _all(state: _Run, calls: Iterable[Any]) -> None:
    async with asyncio.TaskGroup() as group:
        for call in calls:
            group.create_task(call)


async def _closed(state: _Run, load: Load, conversations: Sequence[Sequence[Sized]]) -> None:
    waiting = iter(conversations)
    ends = time.perf_counter() + load.duration_s if load.duration_s is not None else None

    async def work() -> None:
        for conversation in waiting:
            if ends is not None and time.perf_counter() >= ends:
                return
            await state.converse(conversation, None)

    await _all(state, [work() for _ in range(load.concurrency)])


async def _open(state: _Run, load: Load, conversations: Sequence[Sequence[Sized]]) -> None:
    began = time.perf_counter()
    first = conversations[0][0].wanted.at_s or 0.0
    async with asyncio.TaskGroup() as group:
        for conversation in conversations:
            due = (conversation[0].wanted.at_s or 0.0) - first
            if load.duration_s is not None and due >= load.duration_s:
                break
            left = began + due - time.perf_counter()
            if left > 0:
                await asyncio.sleep(left)
            group.create_task(state.converse(conversation, due))


async def _watch(gauge: Gauge, looks: list[Look]) -> None:
    while True:
        looks.append(await _look(gauge))
        await asyncio.sleep(LOOK_S)


async def _look(gauge: Gauge) -> Look:
    seen = await asyncio.to_thread(gauge.look)
    return Look(time.perf_counter(), seen.vitals)
