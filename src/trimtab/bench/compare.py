"""Ask two back ends the same prompts in turn, in an order drawn from a seed; keep what each answered and when."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from trimtab.bench.client import Timeouts, open_client
from trimtab.bench.comparing.checks import failed_checks
from trimtab.bench.comparing.judge import MAX_TOKENS, Judged, judge
from trimtab.bench.comparing.prompts import Prompt
from trimtab.bench.comparing.sides import Comparison, Price, Reply, Side
from trimtab.bench.endpoint import Server, Target, answering_server, check_target, version_of
from trimtab.bench.stopping import stop_at_signals, unless
from trimtab.bench.wire import Answer, Bounds, address_of, send

GIVEN_UP = "not asked: the server had failed three times in a row"
_IN_A_ROW = 3


class Live(msgspec.Struct, frozen=True):
    """A back end to be asked."""

    target: Target
    price: Price | None = None


class Plan(msgspec.Struct, frozen=True):
    """What to compare. `b` None: `a` alone. A `Side` was asked before."""

    prompts: tuple[Prompt, ...]
    a: Live | Side
    b: Live | Side | None = None
    judge: Target | None = None
    seed: int = 0
    repeats: int = 1
    max_tokens: int = 256
    concurrency: int = 1  # pairs at once
    bounds: Bounds = Bounds()


Progress = Callable[[int, int, int], None]  # done, failed, all


class _Asked:
    """A server that is asked, and what came."""

    def __init__(self, live: Live, server: Server, engine: str | None, plan: Plan) -> None:
        self._live, self.server, self._engine, self._plan = live, server, engine, plan
        self._address = address_of(server.url, live.target.api_key)
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._replies: list[Reply] = []
        self._notes: dict[str, int] = {}
        self._row = 0  # failures, one after the other

    async def ask(self, prompt: Prompt, repeat: int) -> bool:
        """Ask once; whether the answer came whole."""
        if self._row >= _IN_A_ROW:
            self._replies.append(Reply(prompt.id, repeat, trouble=GIVEN_UP))
            return False
        most = prompt.max_tokens or self._plan.max_tokens
        reply = reply_of(prompt, repeat, await self._send(prompt, most))
        self._row = self._row + 1 if reply.trouble is not None and not reply.trouble.startswith("status 4") else 0
        self._replies.append(reply)
        self._note(reply, most)
        return reply.trouble is None

    async def say(self, text: str) -> str | None:
        """The whole answer to `text`, None when there was none."""
        answer = await self._send(Prompt(prompt=text), MAX_TOKENS)
        return answer.text if answer.trouble is None else None

    async def _send(self, prompt: Prompt, most: int) -> Answer:
        body: dict[str, Any] = self.server.body(prompt.text, most, stream=True)
        if prompt.messages and self.server.chat:
            body["messages"] = list(prompt.messages)
        return await send(self._address, body, self._plan.bounds)

    def _note(self, reply: Reply, most: int) -> None:
        if reply.trouble is not None:
            return
        found = {
            "no usage": not reply.counted,
            "no text": not reply.text.strip(),
            "not streamed": reply.ttft_s is None,
            "fewer tokens than chunks": reply.ttft_s is not None and reply.completion_tokens < reply.chunks - 2,
            "more tokens than asked": reply.completion_tokens > most,
        }
        for name, true in found.items():
            if true:
                self._notes[name] = self._notes.get(name, 0) + 1

    def side(self) -> Side:
        replies = tuple(sorted(self._replies, key=lambda r: (r.repeat, r.id)))
        server, live = self.server, self._live
        return Side(server.api, server.model, self._started, replies, self._engine, live.price, self._notes)


def compare(plan: Plan, progress: Progress | None = None) -> Comparison:
    """Run it. UpstreamError where a server does not answer at all; Ctrl-C ends it with what there is."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_compare(plan, progress))


async def _compare(plan: Plan, progress: Progress | None) -> Comparison:
    asked = [await _found(side, plan) if isinstance(side, Live) else None for side in (plan.a, plan.b)]
    arbiter = await _found(Live(plan.judge), plan) if plan.judge is not None else None
    order: list[str] = []
    judged: list[Judged] = []
    with stop_at_signals() as stop:
        interrupted = await unless(stop, _ask_all(plan, asked, order, progress))
        a, b = (one.side() if one else was for one, was in zip(asked, (plan.a, plan.b), strict=True))
        assert isinstance(a, Side)
        assert not isinstance(b, Live)
        found = Comparison(
            plan.prompts, plan.seed, plan.repeats, plan.max_tokens, a, b, order=tuple(order), interrupted=interrupted
        )
        if arbiter is not None and not interrupted:
            interrupted = await unless(stop, _judge_all(found, arbiter, judged))
    name = arbiter.server.model if arbiter is not None else None
    return msgspec.structs.replace(found, judge=name, judged=tuple(judged), interrupted=interrupted)


async def _found(live: Live, plan: Plan) -> _Asked:
    """The server behind `live`, which has answered a first short request."""
    check_target(live.target)
    bounds = plan.bounds
    timeouts = Timeouts(bounds.connect_s, bounds.first_s, bounds.between_s)
    async with open_client(live.target.base_url, live.target.api_key, timeouts) as client:
        server = await answering_server(client, live.target, timeouts)
        return _Asked(live, server, await version_of(client, server), plan)


async def _ask_all(plan: Plan, asked: Sequence[_Asked | None], order: list[str], progress: Progress | None) -> None:
    source = random.Random(plan.seed)
    jobs = [(prompt, repeat) for repeat in range(plan.repeats) for prompt in plan.prompts]
    source.shuffle(jobs)
    drawn = [(prompt, repeat, source.random() < 0.5) for prompt, repeat in jobs]
    waiting, all_of, counts = iter(drawn), len(drawn) * sum(one is not None for one in asked), [0, 0]

    async def work() -> None:
        for prompt, repeat, swapped in waiting:
            names = "ba" if swapped else "ab"
            order.append(f"{prompt.id}/{repeat} {names}")
            for name in names:
                one = asked["ab".index(name)]
                if one is None:
                    continue
                counts[0] += 1
                counts[1] += not await one.ask(prompt, repeat)
                if progress is not None:
                    progress(counts[0], counts[1], all_of)

    async with asyncio.TaskGroup() as group:
        for _ in range(plan.concurrency):
            group.create_task(work())


async def _judge_all(found: Comparison, arbiter: _Asked, judged: list[Judged]) -> None:
    questions = {prompt.id: prompt.text for prompt in found.prompts}
    for a, b in found.pairs:
        if a.repeat == 0:
            mark = f"{random.Random(f'{found.seed} {a.id}').getrandbits(48):012x}"
            judged.append(await judge(arbiter.say, a.id, questions[a.id], a.text, b.text, mark))


def reply_of(prompt: Prompt, repeat: int, answer: Answer) -> Reply:
    """What is kept of an answer."""
    usage, times = answer.usage, answer.times
    trouble = answer.trouble
    if trouble is not None and answer.fault is not None and answer.fault.message:
        trouble = f"{trouble}: {answer.fault.message[:300]}"
    return Reply(
        prompt.id,
        repeat,
        answer.text,
        trouble,
        answer.finish_reason,
        times[0] if times and answer.streamed else None,
        times[-1] if times else None,
        usage.prompt_tokens if usage is not None else None,
        usage.completion_tokens if usage is not None else len(times),
        usage is not None,
        len(times),
        failed_checks(prompt, answer.text) if trouble is None else (),
    )
