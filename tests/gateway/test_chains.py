"""Chains of fall-backs over models and providers, and who is chosen by weight and by beginning together."""

from __future__ import annotations

import json
from collections import Counter

from tests.gateway.scripted import CHAT, CLOSE, STREAM_HEAD, Running, Scripted, Step, answer, chunk, gateway, run
from trimtab.gateway.config import BackEndConfig, Bounds, Config, ModelConfig, TargetConfig
from trimtab.gateway.fleet import Fleet
from trimtab.gateway.paths import SERVED
from trimtab.gateway.translate import between

KINDS = {"local": "vllm", "cloud": "openai", "other": "anthropic"}
MODELS = {
    "coder": ModelConfig((TargetConfig("local", "org/coder"),), fall_back=("coder-cloud",)),
    "coder-cloud": ModelConfig((TargetConfig("cloud", "coder-large"),), fall_back=("coder-other",)),
    "coder-other": ModelConfig((TargetConfig("other", "else-1"),)),
}
CLOUDS = {**CHAT, "model": "coder-large"}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "else-1", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "from another"}], "usage": {"input_tokens": 5, "output_tokens": 3},
}  # fmt: skip
EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "from another"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}},
    {"type": "message_stop"},
]
STREAM: list[Step] = [
    STREAM_HEAD,
    *(chunk(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode()) for e in EVENTS),
    b"0\r\n\r\n",
]
ASKED = {"model": "coder", "messages": [{"role": "user", "content": "Hello"}]}
REFUSED = answer({"error": {"message": "down"}}, 503)


async def _chain(ends: dict[str, Scripted]) -> Config:
    for end in ends.values():
        await end.start()
    backs = {
        name: BackEndConfig(f"http://127.0.0.1:{end.port}", kind=KINDS[name], bounds=Bounds())
        for name, end in ends.items()
    }
    return Config(back_ends=backs, models=MODELS)


def _ends(local: list[Step], cloud: list[Step], other: list[Step]) -> dict[str, Scripted]:
    return {
        "local": Scripted(lambda n, r: local), "cloud": Scripted(lambda n, r: cloud),
        "other": Scripted(lambda n, r: other),
    }  # fmt: skip


async def _told(running: Running, stream: bool = False) -> tuple[int, str | None, bytes]:
    found = await running.ask({**ASKED, "stream": True} if stream else ASKED)
    assert found.whole
    return found.status, found.headers.get("x-trimtab-fall-back"), found.body


def test_the_first_provider_that_answers_does_in_the_clients_words_and_under_its_name() -> None:
    async def test() -> None:
        ends = _ends([CLOSE], [answer(CLOUDS)], [answer(MESSAGE)])
        async with gateway(await _chain(ends), between=between) as running:
            status, model, body = await _told(running)
            assert (status, model, json.loads(body)) == (200, "coder-large", {**CHAT, "model": "coder"})
        assert json.loads(ends["cloud"].seen[0].partition(b"\r\n\r\n")[2])["model"] == "coder-large"
        assert [len(end.seen) for end in ends.values()] == [1, 1, 0]

    run(test())


def test_a_chain_goes_on_to_a_provider_of_another_protocol() -> None:
    async def test() -> None:
        ends = _ends([REFUSED], [answer({"error": {}}, 429)], [answer(MESSAGE)])
        async with gateway(await _chain(ends), between=between) as running:
            status, model, body = await _told(running)
            told = json.loads(body)
            assert (status, model, told["model"]) == (200, "else-1", "coder")
            assert told["choices"][0]["message"]["content"] == "from another"
            assert [(r.model, r.back_end, r.prompt_tokens, r.completion_tokens) for r in running.records] == [
                ("coder", "other", 5, 3)
            ]
        assert ends["other"].seen[0].startswith(b"POST /v1/messages ")
        assert [len(end.seen) for end in ends.values()] == [1, 1, 1]

    run(test())


def test_a_stream_falls_back_until_its_first_byte() -> None:
    async def test() -> None:
        ends = _ends([STREAM_HEAD[:30], CLOSE], [REFUSED], STREAM)
        async with gateway(await _chain(ends), between=between) as running:
            status, model, body = await _told(running, stream=True)
            assert (status, model) == (200, "else-1")
            *events, done, empty = body.split(b"\n\n")
            assert (done, empty) == (b"data: [DONE]", b"")
            deltas = [json.loads(event[6:])["choices"] for event in events]
            assert "".join(c[0]["delta"].get("content") or "" for c in deltas if c) == "from another"

    run(test())


def test_when_the_whole_chain_fails_its_last_answer_is_told() -> None:
    async def test() -> None:
        ends = _ends([CLOSE], [CLOSE], [answer({"type": "error", "error": {"type": "api_error", "message": "x"}}, 500)])
        async with gateway(await _chain(ends), between=between) as running:
            status, _, body = await _told(running)
            assert (status, json.loads(body)["error"]["message"]) == (500, "x")  # in the caller's dialect

    run(test())


def test_beginnings_are_shared_out_by_weight() -> None:
    backs = {name: BackEndConfig("http://127.0.0.1:9", kind="vllm") for name in "ab"}
    targets = (TargetConfig("a", "m", weight=3.0), TargetConfig("b", "m", weight=1.0))
    routes = Fleet().apply(Config(back_ends=backs, models={"m": ModelConfig(targets, choose="prefix-affine")}), {})
    route, served = routes.find("m"), SERVED[b"/chat/completions"]
    assert route is not None
    for back_end in routes.back_ends:  # busy by their weights, so that none is over its share
        back_end.outstanding = {"a": 300, "b": 100}[back_end.name]

    def chosen(prompt: int) -> str:
        found = route.choose(served, routes.between, b'{"messages":"%d"}' % prompt)
        assert found is not None
        return found.back_end.name

    shares = Counter(chosen(prompt) for prompt in range(400))
    assert 270 <= shares["a"] <= 330, shares  # 300 meant
    assert all(chosen(prompt) == chosen(prompt) for prompt in range(20))
