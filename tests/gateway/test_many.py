"""Many requests over back ends that fail at random: each is answered once, and the books agree with the answers."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter

from tests.gateway.scripted import (
    CHAT,
    CLOSE,
    RESET,
    STREAM_HEAD,
    Answer,
    Script,
    Step,
    answer,
    chunk,
    events,
    run,
    several,
)
from trimtab.gateway.config import Bounds, ModelConfig, TargetConfig

REQUESTS, AT_ONCE, SEED = 1500, 24, 7
DELTA = {"model": "m", "choices": [{"delta": {"content": "hi"}}]}
FAULTS: list[list[Step]] = [
    [CLOSE],
    [RESET],
    [b"HTTP/1.1 200 OK\r\nConte", CLOSE],
    [answer({"error": {"message": "busy"}}, 429)],
    [answer({"error": {"message": "broken"}}, 500)],
    [answer(b"<html>", 502, kind="text/html")],
    [answer(CHAT)[:-5], RESET],
    [STREAM_HEAD, chunk(events(DELTA)[0]), CLOSE],
    [b"garbage\r\n\r\n"],
]


def failing(seed: int, told: Counter[str]) -> Script:
    """Four of five requests are answered well, each with other tokens; `told`: what was said of them in all."""
    dice = random.Random(seed)

    def script(n: int, request: bytes) -> list[Step]:
        if dice.random() < 0.2:
            told["faults"] += 1
            return dice.choice(FAULTS)
        usage = {"prompt_tokens": dice.randrange(1, 1000), "completion_tokens": dice.randrange(1, 1000)}
        told["prompt"] += usage["prompt_tokens"]
        told["completion"] += usage["completion_tokens"]
        told["good"] += 1
        if b'"stream": true' not in request and b'"stream":true' not in request:
            return [answer({**CHAT, "usage": usage})]
        last = {"choices": [], "usage": usage}
        pieces = [chunk(event) for event in events(DELTA, DELTA, last, b"[DONE]")]
        return [STREAM_HEAD, *(pieces if dice.random() < 0.5 else [b"".join(pieces)]), b"0\r\n\r\n"]

    return script


def kind(found: Answer, streamed: bool) -> str:
    """What became of a request, as its client sees it."""
    if found.status != 200:
        assert found.whole
        assert found.json["error"]
        return str(found.status)
    if not streamed or not found.headers["content-type"].startswith("text/event-stream"):
        return "200" if found.whole else "cut"
    if found.whole:
        assert found.body.endswith(b"data: [DONE]\n\n")
        return "200"
    assert b'data: {"error":' in found.body
    return "cut"


def test_every_request_is_answered_once_and_usage_adds_up() -> None:
    async def test() -> None:
        told: Counter[str] = Counter()
        levels = {
            "m": ModelConfig((TargetConfig("a", "m"), TargetConfig("b", "m")), fall_back=("n",)),
            "n": ModelConfig((TargetConfig("c", "m"),)),
        }
        scripts = [failing(seed, told) for seed in range(3)]
        async with several(scripts, models=levels, protocols=("chat",), waits=Bounds()) as (running, ends):
            seen: Counter[str] = Counter()
            dice, gate = random.Random(SEED), asyncio.Semaphore(AT_ONCE)

            async def ask(streamed: bool, tells: bool) -> None:
                body = {"stream": streamed, "messages": [{"role": "user", "content": "x" * 200}]}
                body |= {"stream_options": {"include_usage": True}} if streamed and tells else {}
                async with gate:
                    found = await running.ask(body)
                seen[kind(found, streamed)] += 1
                if found.status == 200 and found.whole and not streamed:
                    seen["prompt"] += json.loads(found.body)["usage"]["prompt_tokens"]
                shown = b'"usage"' in found.body
                assert shown == (found.status == 200 and (not streamed or tells) and found.whole) or not found.whole

            await asyncio.gather(*(ask(dice.random() < 0.5, dice.random() < 0.5) for _ in range(REQUESTS)))
            records = running.records
            assert len(records) == REQUESTS == sum(n for what, n in seen.items() if what != "prompt")
            good = [r for r in records if r.status == 200]
            assert len(good) == seen["200"] == told["good"]
            assert all(r.counted for r in good)
            assert sum(r.prompt_tokens for r in good) == told["prompt"]
            assert sum(r.completion_tokens for r in good) == told["completion"]
            assert sum(len(e.seen) for e in ends) == told["good"] + told["faults"]
            assert all(b.outstanding == 0 for b in running.fleet.back_ends.values())
            assert seen["200"] > REQUESTS * 0.8

    run(test())
