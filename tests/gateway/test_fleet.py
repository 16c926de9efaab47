"""Several back ends: who is asked, who is left alone, what a reload keeps, and models that nobody configured."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from tests.gateway.scripted import (
    STREAM_HEAD,
    Answer,
    Running,
    Script,
    Scripted,
    Step,
    answer,
    chunk,
    config,
    events,
    gateway,
    one,
    run,
    several,
    until,
)
from trimtab.gateway.config import ModelConfig, TargetConfig
from trimtab.gateway.health import Health
from trimtab.gateway.secret import Secret

DELTA = {"choices": [{"delta": {"content": "hi"}}]}


def models(**fields: object) -> dict[str, ModelConfig]:
    targets = tuple(TargetConfig(name, "m") for name in "abc")
    return {"m": msgspec.convert({"targets": msgspec.to_builtins(targets), **fields}, ModelConfig)}


def test_the_least_busy_replica_is_asked() -> None:
    async def test() -> None:
        free = asyncio.Event()
        async with several([[free, answer()]] * 3, models=models()) as (running, ends):
            asking = [asyncio.create_task(running.ask()) for _ in range(9)]
            await until(lambda: sum(len(e.seen) for e in ends) == 9)
            assert [len(e.seen) for e in ends] == [3, 3, 3]
            free.set()
            assert {a.status for a in await asyncio.gather(*asking)} == {200}

    run(test())


def test_weights_share_the_load() -> None:
    async def test() -> None:
        targets = (TargetConfig("a", "m", weight=3.0), TargetConfig("b", "m", weight=1.0))
        free = asyncio.Event()
        async with several([[free, answer()]] * 2, models={"m": ModelConfig(targets)}) as (running, ends):
            asking = [asyncio.create_task(running.ask()) for _ in range(8)]
            await until(lambda: sum(len(e.seen) for e in ends) == 8)
            assert [len(e.seen) for e in ends] == [6, 2]
            free.set()
            await asyncio.gather(*asking)

    run(test())


def test_equal_beginnings_meet_the_same_replica_and_others_spread() -> None:
    async def test() -> None:
        async with several([[answer()]] * 3, models=models(choose="prefix-affine")) as (running, ends):
            for prompt in range(24):
                beginning = [{"role": "system", "content": f"{prompt} " * 3000}]
                before = [len(e.seen) for e in ends]
                for turn in ("one", "two"):
                    await running.ask({"messages": [*beginning, {"role": "user", "content": turn}]})
                more = [len(e.seen) - n for e, n in zip(ends, before, strict=True)]
                assert sorted(more) == [0, 0, 2]
            assert min(len(e.seen) for e in ends) >= 4

    run(test())


def test_one_beginning_does_not_overload_its_replica() -> None:
    async def test() -> None:
        free = asyncio.Event()
        async with several([[free, answer()]] * 3, models=models(choose="prefix-affine")) as (running, ends):
            asking = [asyncio.create_task(running.ask({"messages": []})) for _ in range(12)]
            await until(lambda: sum(len(e.seen) for e in ends) == 12)
            assert max(len(e.seen) for e in ends) <= 6
            free.set()
            await asyncio.gather(*asking)

    run(test())


def test_the_name_that_was_asked_for_is_in_the_answer() -> None:
    """In each event, in spaced JSON and as a part of a text it is left alone."""

    async def test() -> None:
        served = {"alias": ModelConfig((TargetConfig("a", "org/real"),))}
        text = 'he said "model":"org/real"'
        body = {"model": "org/real", "choices": [{"message": {"content": text}}]}
        spaced = json.dumps(body).encode()
        async with one([answer(spaced)], models=served) as (running, back_end):
            found = await running.ask({"model": "alias"})
            assert found.json == {**body, "model": "alias"}
            assert found.whole
            assert json.loads(back_end.seen[0].partition(b"\r\n\r\n")[2])["model"] == "org/real"
        stream = [STREAM_HEAD, *(chunk(e) for e in events(body, body)), b"0\r\n\r\n"]
        async with one(stream, models=served) as (running, _):
            found = await running.ask({"model": "alias", "stream": True})
            assert found.body == b"".join(events({**body, "model": "alias"}, {**body, "model": "alias"}))

    run(test())


@asynccontextmanager
async def looked_after(running: Running) -> AsyncIterator[None]:
    def changed(routes: object) -> None:
        running.front.routes = running.fleet.routes

    looking = asyncio.create_task(Health(running.fleet, changed).run())
    try:
        yield
    finally:
        looking.cancel()
        await asyncio.wait([looking])


def up_or_down(up: asyncio.Event, listed: list[dict[str, object]]) -> Script:
    def script(n: int, request: bytes) -> list[Step]:
        if request.startswith(b"GET /health "):
            return [b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % (200 if up.is_set() else 503)]
        if request.startswith(b"GET /v1/models "):
            return [answer({"object": "list", "data": listed})]
        return [answer()]

    return script


def test_models_that_a_back_end_lists_are_served_with_their_context() -> None:
    async def test() -> None:
        up = asyncio.Event()
        up.set()
        listed = [{"id": "org/real", "max_model_len": 4096, "permission": [{"id": "x"}]}, {"id": "b/c"}]
        served = {"alias": ModelConfig((TargetConfig("a", "b/c"),))}
        async with one(up_or_down(up, listed), models=served, health_every=0.1) as (running, _), looked_after(running):
            await until(lambda: "org/real" in running.front.routes.names)
            assert running.front.routes.names == ("alias", "org/real")  # b/c has a name of ours
            found = Answer(await running.raw(GET % b"/v1/models"))
            real = found.json["data"][1]
            assert (real["id"], real["object"], real["type"], real["max_model_len"]) == (
                "org/real", "model", "model", 4096,
            )  # fmt: skip
            for path in (b"/models/org/real", b"/v1/models/org%2Freal"):  # the second as OpenAI's clients write it
                assert Answer(await running.raw(GET % path)).json == real
            assert Answer(await running.raw(GET % b"/v1/models/b/c")).status == 404
            assert (await running.ask({"model": "org/real"})).status == 200

    run(test())


GET = b"GET %b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer mine\r\nConnection: close\r\n\r\n"


def test_a_back_end_that_says_it_is_down_is_asked_for_nothing_until_it_is_up() -> None:
    async def test() -> None:
        up = asyncio.Event()
        async with one(up_or_down(up, []), health_every=0.05) as (running, _), looked_after(running):
            await until(lambda: not running.fleet.back_ends["a"].healthy)
            found = await running.ask()
            assert (found.status, found.json["error"]["code"]) == (503, "no_back_end")
            assert Answer(await running.raw(GET % b"/health")).status == 503
            up.set()
            await until(lambda: running.fleet.back_ends["a"].healthy)
            assert (await running.ask()).status == 200
            assert Answer(await running.raw(GET % b"/health")).status == 200

    run(test())


def test_a_reload_drops_no_stream_and_keeps_what_stays() -> None:
    async def test() -> None:
        go = asyncio.Event()
        stream = [STREAM_HEAD, chunk(events(DELTA)[0]), go, chunk(events(b"[DONE]")[0]), b"0\r\n\r\n"]

        def leaving(n: int, request: bytes) -> list[Step]:
            return list(stream)

        stays, leaves = Scripted(lambda n, r: [answer()]), Scripted(leaving)
        await stays.start()
        await leaves.start()
        both = {"stays": stays.port, "leaves": leaves.port}
        served = {
            "m": ModelConfig((TargetConfig("leaves", "m"),)),
            "n": ModelConfig((TargetConfig("stays", "n"),)),
        }
        async with gateway(config(both, served, protocols=("chat",))) as running:
            assert (await running.ask({"model": "n"})).status == 200
            running.fleet.back_ends["stays"].failures = 2
            streaming = asyncio.create_task(running.ask({"stream": True}))
            await leaves.arrived.wait()
            kept = {"m": ModelConfig((TargetConfig("stays", "m"),)), "n": served["n"]}
            after = config({"stays": stays.port}, kept, weight=2.0, protocols=("chat",))
            running.front.routes = running.fleet.apply(after, {"stays": Secret("k")})
            assert (await running.ask()).status == 200  # the other one from now on
            go.set()
            found = await streaming
            assert found.whole
            assert found.body == b"".join(events(DELTA, b"[DONE]"))
            await leaves.left.wait()  # its connection is not kept
            assert stays.connections == 1
            assert b"Authorization: Bearer k\r\n" in stays.seen[-1]
            assert Counter(r.back_end for r in running.records) == {"stays": 2, "leaves": 1}
        await stays.stop()
        await leaves.stop()

    run(test())


def test_a_drain_ends_the_stream_first_and_takes_no_new_request() -> None:
    async def test() -> None:
        go = asyncio.Event()
        stream = [STREAM_HEAD, chunk(events(DELTA)[0]), go, chunk(events(b"[DONE]")[0]), b"0\r\n\r\n"]
        async with one(stream) as (running, back_end):
            streaming = asyncio.create_task(running.ask({"stream": True}))
            _, idle = await running.send(b"")
            await back_end.arrived.wait()
            running.stop.set()
            await asyncio.sleep(0)
            go.set()
            assert (await streaming).whole
            idle.close()

    run(test())


def test_an_audio_form_goes_by_its_model_field() -> None:
    async def test() -> None:
        served = {"m": ModelConfig((TargetConfig("a", "whisper"),))}
        form = (
            b'--b1\r\nContent-Disposition: form-data; name="file"; filename="model"\r\n\r\n\x00--b2\r\n'
            b'--b1\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n--b1--\r\n'
        )
        async with one([answer({"text": "hi"})], models=served) as (running, back_end):
            kind = "Content-Type: multipart/form-data; boundary=b1"
            found = await running.ask(form, "/v1/audio/transcriptions", kind)
            assert (found.status, found.json) == (200, {"text": "hi"})
            head, _, body = back_end.seen[0].partition(b"\r\n\r\n")
            assert head.startswith(b"POST /v1/audio/transcriptions ")
            assert body == form.replace(b"\r\n\r\nm\r\n", b"\r\n\r\nwhisper\r\n")
            assert (await running.ask(form, "/audio/transcriptions", "Content-Type: text/plain")).status == 415
            assert (await running.ask(b"--b1--\r\n", "/audio/transcriptions", kind)).json["error"]["param"] == "model"

    run(test())


def test_an_anthropic_back_end_gets_its_own_headers_and_nothing_of_the_clients_key() -> None:
    async def test() -> None:
        async with one([answer()], kind="anthropic") as (running, back_end):
            running.front.routes = running.fleet.apply(
                config({"a": back_end.port}, kind="anthropic"), {"a": Secret("theirs")}
            )
            beta = ("anthropic-beta: x-1", "User-Agent: them", "Cookie: a=b", "X-Forwarded-For: 1.2.3.4")
            assert (await running.ask(None, "/messages", *beta)).status == 200
            head, _, _ = back_end.seen[0].partition(b"\r\n\r\n")
            assert head.split(b"\r\n")[0] == b"POST /v1/messages HTTP/1.1"
            names = {line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]}
            assert names == {
                b"host", b"accept-encoding", b"x-api-key", b"content-type", b"content-length", b"x-request-id",
                b"anthropic-beta", b"anthropic-version",
            }  # fmt: skip
            assert b"x-api-key: theirs" in head
            assert b"mine" not in head
            await running.ask(None, "/messages", "anthropic-version: 2099-01-01")
            assert b"anthropic-version: 2099-01-01\r\n" in back_end.seen[1]

    run(test())


def test_paths_are_served_with_and_without_v1_and_asked_where_a_back_end_has_them() -> None:
    asked = {
        "/v1/chat/completions": b"/v1/chat/completions",
        "/chat/completions": b"/v1/chat/completions",
        "/embeddings": b"/v1/embeddings",
        "/v1/tokenize": b"/tokenize",
        "/tokenize": b"/tokenize",
        "/v2/rerank": b"/v1/rerank",
        "/messages/count_tokens": b"/v1/messages/count_tokens",
    }

    async def test() -> None:
        async with one([answer()]) as (running, back_end):
            for path, there in asked.items():
                assert (await running.ask(None, path)).status == 200
                assert back_end.seen[-1].startswith(b"POST " + there + b" HTTP/1.1\r\n")
        async with one([answer()], protocols=("chat",)) as (running, back_end):
            found = await running.ask(None, "/v1/embeddings")
            assert (found.status, found.json["error"]["code"]) == (404, "protocol_not_served")
            assert back_end.seen == []

    run(test())
