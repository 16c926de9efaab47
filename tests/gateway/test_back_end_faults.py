"""Each way in which a back end can break, and what the client sees then."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from tests.gateway.scripted import (
    CHAT,
    CLOSE,
    RESET,
    STREAM_HEAD,
    Answer,
    Script,
    Scripted,
    Step,
    answer,
    chunk,
    events,
    gateway,
    one,
    run,
    several,
    streamed,
    until,
)
from tests.ports import free_port
from trimtab.gateway.config import BackEndConfig, Bounds, Config, ModelConfig, TargetConfig

DELTA = {"model": "m", "choices": [{"delta": {"content": "hi"}}]}
BEGUN = STREAM_HEAD + chunk(events(DELTA)[0])
LEVELS = {
    "m": ModelConfig((TargetConfig("a", "m"),), fall_back=("n",)),
    "n": ModelConfig((TargetConfig("b", "theirs"),)),
}

REPLICAS = {"m": ModelConfig(tuple(TargetConfig(name, "m") for name in "abc"))}


def bytewise(data: bytes) -> list[Step]:
    return [data[at : at + 1] for at in range(len(data))]


GOOD: dict[str, list[Step]] = {
    "whole": [answer()],
    "one byte at a time": bytewise(answer()),
    "103 first": [b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", answer()],
    "100 and 103 in one piece": [b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nA: b\r\n\r\n" + answer()],
    "no length: up to the connection's end": [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", answer()[answer().index(b"{"):], CLOSE],
    "HTTP/1.0": [answer().replace(b"HTTP/1.1", b"HTTP/1.0"), CLOSE],
    "chunked": [
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        *bytewise(chunk(answer()[answer().index(b"{"):]) + b"0\r\nTrailer: x\r\n\r\n")],
    "more than its length: the rest is thrown away": [answer() + b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"],
    "more than its length, later": [answer(), b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad"],
    "a reset right after": [answer(), RESET],
}  # fmt: skip


@pytest.mark.parametrize("steps", GOOD.values(), ids=GOOD.keys())
def test_an_answer_of_any_shape_comes_through_and_twice(steps: list[Step]) -> None:
    async def test() -> None:
        async with one(steps, waits=Bounds()) as (running, back_end):
            for n in (1, 2):
                found = await running.ask()
                assert (found.status, found.whole, found.json) == (200, True, CHAT)
                assert [r.prompt_tokens for r in running.records] == [7] * n
            assert len(back_end.seen) == 2

    run(test())


BROKEN: dict[str, tuple[list[Step], str]] = {
    "closed before a byte": ([CLOSE], "back_end_failed"),
    "reset before a byte": ([RESET], "back_end_failed"),
    "closed in the head": ([b"HTTP/1.1 200 OK\r\nContent-Le", CLOSE], "back_end_failed"),
    "garbage": ([b"\x00\x01garbage\r\n\r\n"], "back_end_failed"),
    "another protocol": ([b"SSH-2.0-OpenSSH_9.2\r\n"], "back_end_failed"),
    "two lengths": ([b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc"], "back_end_failed"),
    "length and chunks": (
        [b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"],
        "back_end_failed",
    ),
    "a negative length": ([b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nab"], "back_end_failed"),
    "a head without end": ([b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20000], "back_end_failed"),
    "101": ([b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"], "back_end_failed"),
    "silent": ([], "back_end_timeout"),
    "silent after 100": ([b"HTTP/1.1 100 Continue\r\n\r\n"], "back_end_timeout"),
    "silent in the head": ([b"HTTP/1.1 200 OK\r\nContent"], "back_end_timeout"),
}


@pytest.mark.parametrize(("steps", "code"), BROKEN.values(), ids=BROKEN.keys())
def test_a_back_end_that_breaks_before_it_answers(steps: list[Step], code: str) -> None:
    """Another one is asked where there is one; else the client gets a clear error."""

    async def test() -> None:
        async with one(steps) as (running, _):
            found = await running.ask()
            status = 504 if code == "back_end_timeout" else 502
            assert (found.status, found.whole, found.json["error"]["code"]) == (status, True, code)
            assert [(r.status, r.counted) for r in running.records] == [(status, False)]
        async with several([steps, [answer({**CHAT, "model": "theirs"})]], models=LEVELS) as (running, ends):
            found = await running.ask()
            assert (found.status, found.json) == (200, CHAT)  # the name that was asked for
            assert found.headers["x-trimtab-fall-back"] == "theirs"
            assert [(r.model, r.answered_by) for r in running.records] == [("m", "n")]
            assert [(r.model, r.back_end, r.status) for r in running.records] == [("m", "b", 200)]
            assert len(ends[1].seen) == 1

    run(test())


CUT: dict[str, tuple[list[Step], int]] = {
    "body shorter than its length": ([answer()[:-9], CLOSE], 0),
    "body reset": ([answer()[:-9], RESET], 0),
    "body silent": ([answer()[:-9]], 0),
    "stream closed": ([BEGUN, CLOSE], 502),
    "stream reset": ([BEGUN, RESET], 502),
    "stream closed inside an event": ([BEGUN, chunk(b'data: {"choices":[{"de'), CLOSE], 502),
    "stream with a bad chunk": ([BEGUN, b"zz\r\n"], 502),
    "stream silent": ([BEGUN], 504),
    "stream closed inside its head's chunk": ([STREAM_HEAD, b"40\r\ndata: ", CLOSE], 502),
}


@pytest.mark.parametrize(("steps", "status"), CUT.values(), ids=CUT.keys())
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
def test_an_answer_that_breaks_off(path: str, steps: list[Step], status: int) -> None:
    """A stream ends with an error event in its dialect and never with its last chunk; a body is cut short."""

    async def test() -> Answer:
        async with one(steps, protocols=("chat", "messages", "responses")) as (running, _):
            found = await running.ask({"stream": status > 0}, path)
            assert not found.whole
            assert [r.status for r in running.records] == [status or (504 if steps[-1] is steps[0] else 502)]
            return found

    found = run(test())
    assert found.status == 200
    if status:
        *before, last, empty = found.body.split(b"\n\n")
        assert empty == b""
        assert before in ([], [events(DELTA)[0].strip()])
        told = {
            "/v1/chat/completions": b'data: {"error":{"message":',
            "/v1/messages": b'event: error\ndata: {"type":"error"',
            "/v1/responses": b'event: error\ndata: {"type":"error","code":"back_end_',
        }
        assert last.startswith(told[path])


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 529, 404, 403, 402, 408])
def test_a_refusal_is_tried_elsewhere_else_passed_on(status: int) -> None:
    told = answer({"error": {"message": "theirs"}}, status, "Retry-After: 7", "Set-Cookie: a=b")

    async def test() -> None:
        async with one([told]) as (running, back_end):
            found = await running.ask()
            assert (found.status, found.json["error"]["message"]) == (status, "theirs")
            assert found.headers["retry-after"] == "7"
            assert "set-cookie" not in found.headers
            assert len(back_end.seen) == 1
        async with several([[told], [answer()]], models=LEVELS) as (running, _):
            assert (await running.ask()).status == 200

    run(test())


def test_the_gateways_own_key_refused_is_no_fault_of_the_client() -> None:
    async def test() -> None:
        async with one([answer({"error": "Unauthorized"}, 401, "WWW-Authenticate: Bearer")]) as (running, _):
            found = await running.ask()
            assert (found.status, found.json["error"]["code"]) == (502, "back_end_refused_key")
            assert "www-authenticate" not in found.headers

    run(test())


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_an_error_that_is_no_json_is_worded_anew(path: str) -> None:
    async def test() -> None:
        page = answer(b"<html>bad gateway</html>", 502, kind="text/html")
        async with one([page]) as (running, _):
            found = await running.ask(None, path)
            assert found.status == 502
            assert found.headers["content-type"] == "application/json"
            assert found.json["error"]["message"] == "the back end answered 502"

    run(test())


def test_a_429_is_told_when_all_others_fail() -> None:
    async def test() -> None:
        busy = answer({"error": {}}, 429, "Retry-After: 7")
        async with several([[busy], [CLOSE]], models=LEVELS) as (running, _):
            found = await running.ask()
            assert (found.status, found.headers["retry-after"], found.json["error"]["code"]) == (
                429,
                "7",
                "back_end_busy",
            )

    run(test())


def test_one_that_said_429_is_passed_over_for_as_long_as_it_said() -> None:
    def script(n: int, request: bytes) -> list[Step]:
        return [answer({"error": {}}, 429, "Retry-After: 30")]

    async def test() -> None:
        async with several([script, [answer()]], models=LEVELS) as (running, ends):
            for _ in range(3):
                assert (await running.ask()).status == 200
            assert (len(ends[0].seen), len(ends[1].seen)) == (1, 3)

    run(test())


NOT_REACHED = {
    "nobody listens": lambda port: f"http://127.0.0.1:{free_port()}",
    "no such name": lambda port: "http://no-such-host.invalid:8000",
    "TLS to a plain port": lambda port: f"https://127.0.0.1:{port}",
    "no network there": lambda port: "http://[100::1]:9",
}


@pytest.mark.parametrize("url", NOT_REACHED.values(), ids=NOT_REACHED.keys())
def test_a_back_end_that_cannot_be_reached(url: Any) -> None:
    async def test() -> None:
        back_end = Scripted(lambda n, request: [answer()])
        await back_end.start()
        made = BackEndConfig(url(back_end.port), kind="vllm", bounds=Bounds(connect=0.5))
        models = {"m": ModelConfig((TargetConfig("a"),))}
        async with gateway(Config(back_ends={"a": made}, models=models)) as running:
            found = await running.ask()
            assert (found.status, found.json["error"]["code"]) == (502, "back_end_failed")
        await back_end.stop()

    run(test())


def test_a_connection_that_was_closed_while_idle_is_no_failure() -> None:
    async def test() -> None:
        closed = asyncio.Event()

        def script(n: int, request: bytes) -> list[Step]:
            return [answer(), closed, CLOSE] if n == 0 else [answer()]

        async with one(script) as (running, back_end):
            assert (await running.ask()).status == 200
            closed.set()  # its close and the next request cross each other
            assert (await running.ask()).status == 200
            assert running.fleet.back_ends["a"].failures == 0
            assert back_end.connections == 2

    run(test())


def test_the_breaker_opens_lets_one_request_try_and_closes() -> None:
    async def test() -> None:
        good, hold = asyncio.Event(), asyncio.Event()

        def script(n: int, request: bytes) -> list[Step]:
            return [hold, answer()] if good.is_set() else [CLOSE]

        async with several([script, [answer()]], models=LEVELS) as (running, (first, second)):
            for asked in (1, 2, 3, 3, 3):
                assert (await running.ask()).status == 200  # the fall-back's
                assert len(first.seen) == asked
            good.set()
            breaker = running.fleet.back_ends["a"]
            breaker.open_until = time.monotonic()  # its time alone is over
            trying = asyncio.create_task(running.ask())
            await until(lambda: len(first.seen) == 4)
            assert breaker.probing
            assert [(await running.ask()).status for _ in range(3)] == [200] * 3  # meanwhile the others are answered
            assert (len(first.seen), len(second.seen)) == (4, 8)  # one at a time
            hold.set()
            assert "x-trimtab-fall-back" not in (await trying).headers
            assert (await running.ask()).status == 200
            assert (len(first.seen), breaker.failures, breaker.probing) == (5, 0, False)

    run(test())


def test_a_try_that_fails_leaves_it_alone_again() -> None:
    async def test() -> None:
        async with several([[CLOSE], [answer()]], models=LEVELS) as (running, (first, _)):
            breaker = running.fleet.back_ends["a"]
            breaker.failures, breaker.open_until = 3, time.monotonic()
            assert [(await running.ask()).status for _ in range(3)] == [200] * 3
            assert (len(first.seen), breaker.failures, breaker.probing) == (1, 4, False)
            assert breaker.open_until > time.monotonic() + 4

    run(test())


def test_when_all_are_left_alone_the_least_bad_is_asked_and_its_answer_closes_the_breaker() -> None:
    async def test() -> None:
        hold = asyncio.Event()
        async with several([[hold, answer()]] * 3, models=REPLICAS) as (running, ends):
            breakers = [running.fleet.back_ends[name] for name in "abc"]
            for breaker, failures in zip(breakers, (5, 3, 4), strict=True):
                breaker.failures, breaker.open_until = failures, time.monotonic() + 60
            asking = [asyncio.create_task(running.ask()) for _ in range(4)]
            await until(lambda: len(ends[1].seen) == 4)  # not one at a time: there is nobody else
            assert not breakers[1].probing
            hold.set()
            assert {found.status for found in await asyncio.gather(*asking)} == {200}
            assert [breaker.failures for breaker in breakers] == [5, 0, 4]
            assert [len(end.seen) for end in ends] == [0, 4, 0]

    run(test())


def test_of_those_left_alone_each_is_asked_once_and_none_that_the_checks_hold_for_down() -> None:
    async def test() -> None:
        async with several([[CLOSE], [CLOSE], [answer()]], models=REPLICAS) as (running, ends):
            breakers = [running.fleet.back_ends[name] for name in "abc"]
            for breaker in breakers:
                breaker.failures, breaker.open_until = 3, time.monotonic() + 60
            breakers[2].healthy = False
            assert (await running.ask()).json["error"]["code"] == "back_end_failed"
            assert [len(end.seen) for end in ends] == [1, 1, 0]
            assert [breaker.failures for breaker in breakers] == [4, 4, 3]
            for breaker in breakers:
                breaker.healthy = False
            found = await running.ask()
            assert (found.status, found.json["error"]["code"]) == (503, "no_back_end")

    run(test())


def test_a_hedge_does_not_ask_one_that_is_left_alone() -> None:
    async def test() -> None:
        go = asyncio.Event()
        models = {"m": ModelConfig((TargetConfig("a", "m"), TargetConfig("b", "m")), hedge_after=0.02)}
        async with several([[go, answer()], [answer()]], models=models, waits=Bounds()) as (running, ends):
            other = running.fleet.back_ends["b"]
            other.failures, other.open_until = 3, time.monotonic() + 60
            asking = asyncio.create_task(running.ask())
            await until(lambda: len(ends[0].seen) == 1)
            (exchange,) = running.front.live
            await until(lambda: exchange._hedge is None)  # its time came
            go.set()
            assert (await asking).status == 200
            assert len(ends[1].seen) == 0

    run(test())


def test_a_bound_on_the_whole() -> None:
    async def test() -> None:
        tick = [chunk(events(DELTA)[0])] * 3
        pauses = [asyncio.Event() for _ in range(40)]
        steps: list[Step] = [STREAM_HEAD]
        for pause in pauses:
            steps += [tick[0], pause]

        async def pace() -> None:
            for pause in pauses:
                await asyncio.sleep(0.1)
                pause.set()

        async with one(steps, protocols=("chat",)) as (running, _):
            pacing = asyncio.create_task(pace())
            found = await running.ask({"stream": True})
            pacing.cancel()
            assert not found.whole
            assert b"not whole after 1.5 s" in found.body
            assert [r.status for r in running.records] == [504]

    run(test())


def test_hedging_asks_a_second_one_and_takes_the_first_answer() -> None:
    async def test() -> None:
        models = {"m": ModelConfig((TargetConfig("a", "m"), TargetConfig("b", "m")), hedge_after=0.05)}
        slow: Script = lambda n, request: []  # noqa: E731
        async with several([slow, [answer()]], models=models) as (running, ends):
            assert (await running.ask()).status == 200
            await ends[0].left.wait()  # the one that lost was told
            assert [len(e.seen) for e in ends] == [1, 1]
            assert [r.back_end for r in running.records] == ["b"]
            assert all(b.outstanding == 0 for b in running.fleet.back_ends.values())

    run(test())


def test_a_hedge_that_comes_too_late_asks_free_port() -> None:
    async def test() -> None:
        targets = tuple(TargetConfig(name, "m") for name in "abc")
        models = {"m": ModelConfig(targets, hedge_after=0.5)}
        async with several([[CLOSE], [answer()], [answer()]], models=models) as (running, ends):
            assert (await running.ask()).status == 200
            await asyncio.sleep(0.6)  # longer than the hedge would have waited
            assert [len(e.seen) for e in ends] == [1, 1, 0]
            assert len(running.records) == 1

    run(test())


def test_a_stream_passes_whole() -> None:
    async def test() -> None:
        async with one([streamed(DELTA, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}})]) as (
            running, back_end,
        ):  # fmt: skip
            found = await running.ask({"stream": True})
            assert found.whole
            assert found.body == b"".join(events(DELTA, b"[DONE]"))
            assert b'"stream_options":{"include_usage":true}' in back_end.seen[0]
            assert [(r.prompt_tokens, r.completion_tokens, r.counted) for r in running.records] == [(3, 1, True)]

    run(test())
