"""A running gateway between client libraries and back ends that speak another protocol."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from tests.gateway.process import KEY, Gateway, gateway
from tests.gateway.translate.conftest import anthropic_client, clients, openai_client, recorded

__all__ = ["clients"]  # a fixture of every test here
ASKED: dict[str, Any] = {"model": "m-chat", "messages": [{"role": "user", "content": "Hello"}]}
SPOKEN = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


class BackEnd(ThreadingHTTPServer):
    """Answers what vLLM answered, whole or streamed, at any of its paths; `seen` holds path, headers and body."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[str, dict[str, str], Any]] = []


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BackEnd

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.seen.append((self.path, {k.lower(): v for k, v in self.headers.items()}, asked))
        if self.path == "/tokenize":
            self._answer(200, recorded("count-tokenize.json"))
            return
        speaks = next(name for name, path in SPOKEN.items() if path == self.path)
        if "too long" in json.dumps(asked):
            self._answer(400, recorded("error-chat.json"))
        elif asked.get("stream"):
            self._answer(200, recorded(f"think-{speaks}.sse"), kind="text/event-stream; charset=utf-8")
        else:
            self._answer(200, recorded(f"think-{speaks}.json"))

    def _answer(self, status: int, body: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for at in range(0, len(body), 333):
            piece = body[at : at + 333]
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def back_end() -> Iterator[BackEnd]:
    server = BackEnd()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def running(back_end: BackEnd, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    url = f"http://127.0.0.1:{back_end.server_port}"
    back_ends = "".join(
        f"  b-{name}: {{url: '{url}', kind: {kind}, protocols: [{protocols}]}}\n"
        for name, kind, protocols in (
            ("chat", "openai", "chat, tokenize"),
            ("messages", "anthropic", "messages"),
            ("responses", "openai", "responses"),
            ("none", "openai", "embeddings"),
        )
    )
    models = "".join(
        f"  m-{name}: {{targets: [{{back_end: b-{name}, model: demo}}]}}\n"
        for name in ("chat", "messages", "responses", "none")
    )
    home: Path = tmp_path_factory.mktemp("gateway")
    with gateway(home, f"local: false\nback_ends:\n{back_ends}models:\n{models}") as one:
        yield one


def anthropics(running: Gateway) -> anthropic.Anthropic:
    return anthropic_client(f"http://127.0.0.1:{running.port}", KEY)


def openais(running: Gateway) -> openai.OpenAI:
    return openai_client(f"http://127.0.0.1:{running.port}", KEY)


@pytest.mark.parametrize("model", ["m-chat", "m-messages", "m-responses"])
def test_messages(model: str, running: Gateway, back_end: BackEnd) -> None:
    asked = {**ASKED, "model": model, "max_tokens": 50}
    whole = anthropics(running).messages.create(**asked)
    with anthropics(running).messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        assert [block.type for block in message.content] == ["thinking", "text"]
        assert (message.model, message.stop_reason) == (model, "end_turn")
        assert (message.usage.input_tokens, message.usage.output_tokens) == (113, 21)
    path, _, body = back_end.seen[-1]
    assert path == SPOKEN[model[2:]]
    assert body["model"] == "demo"


@pytest.mark.parametrize("model", ["m-chat", "m-messages", "m-responses"])
def test_responses(model: str, running: Gateway, back_end: BackEnd) -> None:
    whole = openais(running).responses.create(model=model, input="Hello")
    with openais(running).responses.stream(model=model, input="Hello") as stream:
        streamed = stream.get_final_response()
    for answer in (whole, streamed):
        assert (answer.output_text, answer.model, answer.status) == (" The answer is four.", model, "completed")
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (113, 21)
    assert back_end.seen[-1][0] == SPOKEN[model[2:]]


@pytest.mark.parametrize("model", ["m-chat", "m-messages", "m-responses"])
def test_chat(model: str, running: Gateway, back_end: BackEnd) -> None:
    asked = {**ASKED, "model": model}
    whole = openais(running).chat.completions.create(**asked)
    assert whole.usage is not None
    assert (whole.choices[0].message.content, whole.model) == (" The answer is four.", model)
    assert whole.usage.total_tokens == 134
    with openais(running).chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_completion()
    assert streamed.choices[0].message.content == " The answer is four."
    assert streamed.usage is None  # it was not asked for, though the gateway counts it
    path, headers, _ = back_end.seen[-1]
    assert path == SPOKEN[model[2:]]
    assert ("anthropic-version" in headers) == (model == "m-messages")


def test_tokens_are_counted(running: Gateway, back_end: BackEnd) -> None:
    asked: dict[str, Any] = {"model": "m-chat", "messages": [{"role": "user", "content": "Hello"}]}
    assert anthropics(running).messages.count_tokens(**asked).input_tokens == 25
    assert back_end.seen[-1][0] == "/tokenize"
    with pytest.raises(anthropic.NotFoundError):
        anthropics(running).messages.count_tokens(**{**asked, "model": "m-none"})


def test_errors_are_in_the_callers_dialect(running: Gateway) -> None:
    long: Any = [{"role": "user", "content": "too long"}]
    with pytest.raises(anthropic.BadRequestError) as of_messages:
        anthropics(running).messages.create(model="m-chat", max_tokens=5, messages=long)
    assert isinstance(of_messages.value.body, dict)
    assert of_messages.value.body["error"]["type"] == "invalid_request_error"
    assert "maximum context length" in of_messages.value.message
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        openais(running).responses.create(model="m-chat", input="too long")
    with pytest.raises(openai.BadRequestError, match="logprobs") as of_chat:
        openais(running).chat.completions.create(model="m-messages", messages=long, logprobs=True)
    assert (of_chat.value.param, of_chat.value.code) == ("logprobs", "unsupported_parameter")
    with pytest.raises(openai.NotFoundError):
        openais(running).chat.completions.create(model="m-none", messages=long)


def test_usage_is_counted(running: Gateway) -> None:
    status, _, body = running.ask("GET", "/metrics", headers={"Authorization": ""})
    assert status == 200
    counted = [line for line in body.decode().splitlines() if line.startswith("trimtab_gateway_prompt_tokens_total{")]
    tokens = [float(line.rsplit(" ", 1)[1]) for line in counted]
    assert sum(tokens) >= 113
    assert all(number % 113 == 0 for number in tokens)
