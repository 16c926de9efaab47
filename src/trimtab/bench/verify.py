"""Four criteria that make a server verified: one request, several at once, a prompt near its context, no OOM."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import httpx2

from trimtab.bench.client import Exchange, Timeouts, ask, open_client
from trimtab.bench.endpoint import Server, Target, check_target, find_server, settle
from trimtab.bench.health import Health, judge_health, look
from trimtab.bench.prompt import Prompt, Ruler, make_prompt, make_ruler
from trimtab.bench.serverlog import LogSource
from trimtab.engine.api import printable
from trimtab.errors import UsageError
from trimtab.messages import Message, msg

ONE_REQUEST, CONCURRENCY, LONG_CONTEXT, NO_OOM = CRITERIA = ("one_request", "concurrency", "long_context", "no_oom")

OUTPUT_TOKENS = 16
_FIRST_LEVEL = 4
_NEAR_SHARE = 0.01  # how far below the context a prompt counted by /tokenize may stay
_GUESS_SHARE = 0.03  # the same for one whose length is only estimated

_NONE: Mapping[str, object] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Criterion:
    """One of the four; `passed` None means not judged, and `evidence` then says why."""

    name: str
    passed: bool | None
    measured: Mapping[str, object] = field(default_factory=lambda: _NONE)
    evidence: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Capacity:
    """What the server says of its memory, and how many requests of `context_tokens` its KV cache holds."""

    context_tokens: int | None = None
    memory_utilization: float | None = None
    kv_blocks: int | None = None
    kv_tokens: int | None = None
    kv_usage: float | None = None
    requests: float | None = None
    source: str | None = None  # "metrics" or "log"


@dataclass(frozen=True, slots=True)
class Verification:
    """The outcome: `passed` is False if any criterion is, None if any was not judged, else True."""

    url: str
    model: str
    criteria: tuple[Criterion, ...]
    capacity: Capacity
    seconds: float

    @property
    def passed(self) -> bool | None:
        verdicts = [c.passed for c in self.criteria]
        return False if False in verdicts else None if None in verdicts else True


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
    """Judge the server behind `target`; blocks until done. UpstreamError when there is no server to judge.

    `context`: tokens of prompt and answer that one request needs (None: what the server states). An interrupt closes
    all connections, so that the server stops generating.
    """
    return asyncio.run(
        verify_async(target, context=context, concurrency=concurrency, log=log, observer=observer, timeouts=timeouts)
    )


async def verify_async(
    target: Target,
    *,
    context: int | None = None,
    concurrency: int = 8,
    log: LogSource | None = None,
    observer: Observer | None = None,
    timeouts: Timeouts | None = None,
) -> Verification:
    """`verify` inside a running event loop; cancelling it closes all connections."""
    check_target(target)
    for name, number in (("--context", context), ("--concurrency", concurrency)):
        if number is not None and number < 1:
            raise UsageError(msg("{name} is {number}; it must be 1 or more", name=name, number=number))
    timeouts = timeouts or Timeouts()
    began = time.perf_counter()
    async with open_client(target.base_url, target.api_key, timeouts) as client:
        server = await find_server(client, target, timeouts)
        run = _Run(client, server, timeouts, context, concurrency, observer or (lambda name, criterion: None))
        criteria, health = await run.judge_all(log)
    return Verification(
        run.server.api, run.server.model, criteria, _capacity(health, run.context), time.perf_counter() - began
    )


@dataclass
class _Run:
    client: httpx2.AsyncClient
    server: Server
    timeouts: Timeouts
    asked_context: int | None
    concurrency: int
    observer: Observer
    mark: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    @property
    def context(self) -> int | None:
        return self.asked_context or self.server.context_tokens

    async def judge_all(self, log: LogSource | None) -> tuple[tuple[Criterion, ...], Health]:
        before = await look(self.client, self.server, log)
        one = self._tell(ONE_REQUEST, await self._one_request(self._begin(ONE_REQUEST)))
        several = self._tell(CONCURRENCY, await self._several(self._begin(CONCURRENCY)))
        long = self._tell(LONG_CONTEXT, await self._long_context(self._begin(LONG_CONTEXT)))
        self._begin(NO_OOM)
        after = await look(self.client, self.server, log)
        verdict, measured, evidence = judge_health(before, after)
        return (one, several, long, self._tell(NO_OOM, Criterion(NO_OOM, verdict, measured, evidence))), after

    def _begin(self, name: str) -> str:
        self.observer(name, None)
        return name

    def _tell(self, name: str, criterion: Criterion) -> Criterion:
        self.observer(name, criterion)
        return criterion

    async def _ask(self, prompt: str, output_tokens: int, *, stream: bool = False) -> Exchange:
        body = self.server.body(prompt, output_tokens, stream=stream)
        return await ask(self.client, self.server.url, body, self.timeouts)

    async def _one_request(self, name: str) -> Criterion:
        prompt = "Say hello in one short sentence."
        self.server, done = await settle(self.client, self.server, prompt, OUTPUT_TOKENS, self.timeouts)
        measured: dict[str, object] = {"seconds": round(done.total_s, 3), "finish_reason": done.finish_reason}
        wrong: list[Message] = []
        if not done.finished:
            wrong.append(done.why)
        elif not done.text.strip():
            wrong.append(msg("the answer is empty"))
        if done.usage is not None:
            measured |= {
                "prompt_tokens": done.usage.prompt_tokens,
                "completion_tokens": done.usage.completion_tokens,
            }
        if done.status == 200 and (done.usage is None or done.usage.completion_tokens < 1):
            wrong.append(msg("the answer counts no tokens (usage)"))
        good = msg("answered: {text}", text=printable(done.text, 80))
        return Criterion(name, not wrong, measured, tuple(wrong) or (good,))

    async def _several(self, name: str) -> Criterion:
        levels: list[Mapping[str, object]] = []
        for level in concurrency_levels(self.concurrency):
            prompts = (f"{self.mark} {level} {at}. Count from one to ten." for at in range(level))
            began = time.perf_counter()
            done = await asyncio.gather(*(self._ask(p, OUTPUT_TOKENS, stream=True) for p in prompts))
            spent = time.perf_counter() - began
            failed = [d for d in done if not d.finished]
            firsts = [d.first_token_s for d in done if d.first_token_s is not None]
            levels.append(
                {
                    "requests": level,
                    "finished": level - len(failed),
                    "seconds": round(spent, 3),
                    "slowest_first_token_s": round(max(firsts), 3) if firsts else None,
                }
            )
            if failed:
                said = msg("{failed} of {level} at once did not finish", failed=len(failed), level=level)
                return Criterion(name, False, {"levels": levels}, (said, *_different(failed)))
        shown = ", ".join(str(level["requests"]) for level in levels)
        return Criterion(name, True, {"levels": levels}, (msg("all finished, at once: {levels}", levels=shown),))

    async def _long_context(self, name: str) -> Criterion:
        context = self.context
        if context is None:
            why = msg("the server does not state its context: pass it with --context")
            return Criterion(name, None, evidence=(why,))
        ruler = await make_ruler(self.client, self.server, self.mark, self.timeouts)
        if ruler is None:
            why = msg("tokens cannot be counted: no /tokenize, and no usage in a first answer, or no answer at all")
            return Criterion(name, None, {"context_tokens": context}, (why,))
        high = context - OUTPUT_TOKENS
        if not ruler.exact:
            high = int(high * (1 - _GUESS_SHARE))
        if high <= ruler.tokens(1):
            why = msg("a context of {context} tokens is too short to try", context=context)
            return Criterion(name, None, {"context_tokens": context}, (why,))
        near_ok, near, said = await self._near(ruler, high)
        measured: dict[str, object] = {"context_tokens": context, "counted_by": _counted(ruler), "near": near}
        if not near_ok:
            return Criterion(name, False, measured, (said,))
        limit = max(context, self.server.context_tokens or 0)
        beyond_ok, beyond, refused = await self._beyond(ruler, limit)
        return Criterion(name, beyond_ok, measured | {"beyond": beyond}, (said, refused))

    async def _near(self, ruler: Ruler, high: int) -> tuple[bool, Mapping[str, object], Message]:
        low = high - max(8, int(high * _NEAR_SHARE))
        prompt = await make_prompt(self.client, self.server, ruler, low, high, f"{self.mark} near")
        done = await self._ask(prompt.text, OUTPUT_TOKENS)
        measured = _long_measures(prompt, done)
        if not done.finished:
            return False, measured, msg("a prompt of {sent} tokens failed: {why}", sent=prompt.tokens, why=done.why)
        if (seen := was_cut(prompt, done)) is not None:
            return False, measured, msg("cut: {sent} tokens sent, {seen} counted", sent=prompt.tokens, seen=seen)
        return (
            True,
            measured,
            msg("a prompt of {sent} tokens was accepted ({seconds:.1f} s)", sent=prompt.tokens, seconds=done.total_s),
        )

    async def _beyond(self, ruler: Ruler, limit: int) -> tuple[bool | None, Mapping[str, object], Message]:
        low = limit + 1 if ruler.exact else int(limit * (1 + _GUESS_SHARE)) + 1
        high = low + max(16, int(limit * _NEAR_SHARE))
        prompt = await make_prompt(self.client, self.server, ruler, low, high, f"{self.mark} beyond")
        done = await self._ask(prompt.text, OUTPUT_TOKENS)
        return _judge_beyond(prompt, done, limit)


def concurrency_levels(most: int) -> tuple[int, ...]:
    """4, then twice as many, up to `most`; just `most` when it is less than 4."""
    levels = [_FIRST_LEVEL] if most > _FIRST_LEVEL else []
    while levels and levels[-1] * 2 < most:
        levels.append(levels[-1] * 2)
    return (*levels, most)


def was_cut(prompt: Prompt, done: Exchange) -> int | None:
    """The prompt tokens that the server counted, when they are fewer than were sent; None when all arrived."""
    if done.usage is None:
        return None
    least = prompt.tokens if prompt.exact else int(prompt.tokens * (1 - _GUESS_SHARE))
    return done.usage.prompt_tokens if done.usage.prompt_tokens < least else None


def _judge_beyond(prompt: Prompt, done: Exchange, limit: int) -> tuple[bool | None, Mapping[str, object], Message]:
    measured = _long_measures(prompt, done)
    sent = prompt.tokens
    if done.fault is not None and done.fault.status == 400:
        said = printable(done.fault.message, 160)
        if done.fault.about_length:
            return True, measured, msg("one of {sent} was refused with 400: {text}", sent=sent, text=said)
        return (
            True,
            measured,
            msg("one of {sent} was refused with 400, though not in words of length: {text}", sent=sent, text=said),
        )
    if done.status != 200 or done.fault is not None or done.trouble is not None:
        return False, measured, msg("one of {sent} was not refused with 400 but failed: {why}", sent=sent, why=done.why)
    if done.usage is None:
        return False, measured, msg("one of {sent} was not refused, and what was read of it is not counted", sent=sent)
    seen = done.usage.prompt_tokens
    if seen <= limit or was_cut(prompt, done) is not None:
        return False, measured, msg("one of {sent} was not refused but silently cut to {seen}", sent=sent, seen=seen)
    return (
        None,
        measured,
        msg(
            "one of {sent} was answered in full, so its context is longer than {limit}: pass the real one, --context",
            sent=sent,
            limit=limit,
        ),
    )


def _long_measures(prompt: Prompt, done: Exchange) -> Mapping[str, object]:
    return {
        "sent_tokens": prompt.tokens,
        "counted_tokens": done.usage.prompt_tokens if done.usage is not None else None,
        "status": done.status,
        "seconds": round(done.total_s, 3),
    }


def _counted(ruler: Ruler) -> str:
    return "tokenize" if ruler.exact else "usage"


def _different(failed: list[Exchange]) -> list[Message]:
    return list({str(d.why): d.why for d in failed}.values())[:3]


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
