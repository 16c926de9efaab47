"""Verify a running server: judge it by the criteria of the registry, within a time budget, and keep what there is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import msgspec

from trimtab.bench.client import Timeouts, open_client
from trimtab.bench.criteria.one_request import PROMPT
from trimtab.bench.criteria.registry import CRITERIA, NO_OOM, QUICK, WITHOUT_TEXT
from trimtab.bench.criterion import Criterion
from trimtab.bench.endpoint import Target, check_target, find_server
from trimtab.bench.health import Health, look
from trimtab.bench.inquiry import Inquiry, Limits, MemorySource
from trimtab.bench.serverlog import LogSource
from trimtab.bench.stopping import stop_at_signals, unless
from trimtab.errors import UsageError
from trimtab.messages import Message, msg

T = TypeVar("T")
ONE_REQUEST = "one_request"


class Wish(msgspec.Struct, frozen=True):
    """What to verify, beside the target."""

    criteria: tuple[str, ...] = QUICK
    context: int | None = None  # tokens of prompt and answer that one request needs; None: what the server states
    concurrency: int = 8
    log: LogSource | None = None
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    memory: MemorySource | None = None  # of a server on this host
    needle_share: float = 0.8
    memory_minutes: float = 2.0
    budget_s: float | None = None


class Capacity(msgspec.Struct, frozen=True):
    """What the server says of its memory, and how many requests of `context_tokens` its KV cache holds."""

    context_tokens: int | None = None
    memory_utilization: float | None = None
    kv_blocks: int | None = None
    kv_tokens: int | None = None
    kv_usage: float | None = None
    requests: float | None = None
    source: str | None = None  # "metrics" or "log"


class Verification(msgspec.Struct, frozen=True):
    """The outcome: `passed` is False if any criterion failed, None if any was not measured, else True."""

    url: str
    model: str
    criteria: tuple[Criterion, ...]
    capacity: Capacity
    seconds: float
    interrupted: bool = False
    limits: Limits = Limits()

    @property
    def passed(self) -> bool | None:
        verdicts = {c.verdict for c in self.criteria}
        return False if "failed" in verdicts else None if "not_measured" in verdicts else "passed" in verdicts or None


# Called with the name of a criterion when it begins (None) and when it is judged.
Observer = Callable[[str, Criterion | None], None]


def verify(
    target: Target,
    *,
    context: int | None = None,
    concurrency: int = 8,
    log: LogSource | None = None,
    observer: Observer | None = None,
    timeouts: Timeouts | None = None,
) -> Verification:
    """Judge by the quick criteria, as `verify_by` does."""
    wish = Wish(context=context, concurrency=concurrency, log=log, timeouts=timeouts or Timeouts())
    return verify_by(target, wish, observer)


def verify_by(target: Target, wish: Wish, observer: Observer | None = None) -> Verification:
    """Judge the server behind `target`; blocks until done. UpstreamError when there is no server to judge.

    In the main thread SIGINT and SIGTERM close all connections, so that the server stops generating; what was judged
    until then is returned as `interrupted`.
    """
    return asyncio.run(_until_a_signal(target, wish, observer))


async def _until_a_signal(target: Target, wish: Wish, observer: Observer | None) -> Verification:
    with stop_at_signals() as stop:
        return await verify_async(target, wish, observer, stop)


async def verify_async(
    target: Target, wish: Wish, observer: Observer | None = None, stop: asyncio.Event | None = None
) -> Verification:
    """`verify_by` inside a running event loop; `stop` ends it with what there is, cancelling it closes connections."""
    check_target(target)
    for name, number in (("--context", wish.context), ("--concurrency", wish.concurrency)):
        if number is not None and number < 1:
            raise UsageError(msg("{name} is {number}; it must be 1 or more", name=name, number=number))
    began = time.perf_counter()
    watch = _Watch(stop or asyncio.Event(), began + wish.budget_s if wish.budget_s is not None else None)
    async with open_client(target.base_url, target.api_key, wish.timeouts) as client:
        server = await find_server(client, target, wish.timeouts)
        run = Inquiry(
            client, server, wish.timeouts, target.api_key, wish.context, wish.concurrency, wish.log, wish.memory,
            wish.limits, wish.needle_share, wish.memory_minutes, watch.until,
        )  # fmt: skip
        criteria = await _judge_all(run, wish.criteria, watch, observer or (lambda name, criterion: None))
        health = run.after or run.before
    return Verification(
        run.server.api,
        run.server.model,
        criteria,
        _capacity(health, run.context),
        time.perf_counter() - began,
        watch.stop.is_set(),
        wish.limits,
    )


@dataclass
class _Watch:
    stop: asyncio.Event
    until: float | None

    async def over(self, work: Awaitable[T]) -> T | Message:
        """What `work` gives, or why it was not waited for: then it is cancelled."""
        task = asyncio.ensure_future(work)
        left = None if self.until is None else max(0.0, self.until - time.perf_counter())
        if await unless(self.stop, task, left):
            return msg("interrupted") if self.stop.is_set() else msg("the time budget was spent")
        return task.result()


_LONGER = msg("Run it again with more time: --budget, or this criterion alone with --only.")


async def _judge_all(run: Inquiry, names: Sequence[str], watch: _Watch, observer: Observer) -> tuple[Criterion, ...]:
    for name in names[:1]:
        observer(name, None)
    run.before = await look(run.client, run.server, run.log)
    unprepared = await watch.over(run.prepare(PROMPT))
    if not run.text and "embeddings" not in names:
        names = ("embeddings", *names)
    found: list[Criterion] = []
    for at, name in enumerate(names):
        if at:
            observer(name, None)
        began = time.perf_counter()
        criterion = await _judge(run, name, watch, unprepared)
        criterion = msgspec.structs.replace(criterion, name=name, seconds=round(time.perf_counter() - began, 3))
        found.append(criterion)
        observer(name, criterion)
    return tuple(found)


async def _judge(run: Inquiry, name: str, watch: _Watch, unprepared: Message | None) -> Criterion:
    if unprepared is not None and (name != NO_OOM or watch.stop.is_set()):
        return Criterion("not_measured", (unprepared,), next=(_LONGER,))
    if not run.text and name not in WITHOUT_TEXT:
        return Criterion("not_applicable", (msg("it serves embeddings, no text"),))
    if name == NO_OOM and not watch.stop.is_set():
        return await CRITERIA[name](run)  # whatever else was left out; takes no time
    judged = await watch.over(CRITERIA[name](run))
    return judged if isinstance(judged, Criterion) else Criterion("not_measured", (judged,), next=(_LONGER,))


def _capacity(health: Health, context: int | None) -> Capacity:
    engine, log = health.engine, health.log
    tokens = (engine.kv_tokens if engine else None) or (log.kv_tokens if log else None)
    return Capacity(
        context_tokens=context,
        memory_utilization=(engine.memory_utilization if engine else None) or (log.memory_utilization if log else None),
        kv_blocks=(engine.kv_blocks if engine else None) or (log.kv_blocks if log else None),
        kv_tokens=tokens,
        kv_usage=engine.kv_usage if engine else None,
        requests=round(tokens / context, 2) if tokens and context else None,
        source="metrics" if engine and engine.kv_tokens else "log" if tokens else None,
    )


def chosen(names: Sequence[str] | None, depth: Literal["quick", "full"] | str) -> tuple[str, ...]:
    """The criteria to judge, in the registry's order; UsageError for a name or a depth that there is not."""
    if depth not in ("quick", "full"):
        raise UsageError(msg("{text!r} is no depth", text=depth), hint=msg("Write quick or full."))
    if not names:
        return QUICK if depth == "quick" else tuple(CRITERIA)
    asked = [part.strip() for name in names for part in name.split(",") if part.strip()]
    unknown = next((name for name in asked if name not in CRITERIA), None)
    if unknown is not None or not asked:
        raise UsageError(
            msg("{text!r} is no criterion", text=unknown or ",".join(names)),
            hint=msg("Choose among {names}.", names=", ".join(CRITERIA)),
        )
    return tuple(name for name in CRITERIA if name in asked)
