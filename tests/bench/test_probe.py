"""The probe against real small servers of right and wrong kinds: what it sees, and what the client rules make of it."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import ExitStack

import pytest

from tests.fakes.openai_server import Knobs, serving
from tests.fakes.wrong_server import Reply, answering, saying
from trimtab.bench.probe import Asked, probe
from trimtab.engine.evidence import Evidence, Trouble
from trimtab.rules.clients import judge_endpoint
from trimtab.rules.rule import Severity

PAGE = "<!DOCTYPE html><html><head><title>Sign in</title></head></html>"
UNAUTHORIZED = Reply(401, '{"error":"Unauthorized"}')
NOT_FOUND = Reply(404, '{"detail":"Not Found"}')
MODELS = Reply(200, json.dumps({"object": "list", "data": [{"id": "m", "object": "model", "max_model_len": 4096}]}))
CHUNK = {"choices": [{"index": 0, "delta": {"content": "a"}, "finish_reason": None}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def causes(evidence: Evidence) -> list[str]:
    return [f.rule.name for f in judge_endpoint(evidence).findings if f.severity is Severity.ERROR]


def asked(url: str, key: str | None = None, model: str | None = None, **more: str) -> Evidence:
    return probe(Asked(url, key, model, bound_s=3.0, environ=more))


def vllm(chat: Reply, stream: str = "", tools: Reply | None = None) -> object:
    """A server that lists one model and answers chats with `chat`."""

    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        if path == "/version":
            return Reply(200, '{"version":"0.32.0"}')
        if path == "/health":
            return Reply(200, "")
        if path == "/v1/models":
            return MODELS
        if path != "/v1/chat/completions":
            return NOT_FOUND
        if '"stream":true' in body.replace(" ", ""):
            return Reply(200, stream, "text/event-stream")
        if '"tools"' in body and tools is not None:
            return tools
        return chat

    return answer


def events(*values: object) -> str:
    return "".join(f"data: {json.dumps(v)}\n\n" for v in values) + "data: [DONE]\n\n"


GOOD = Reply(200, json.dumps({"choices": [{"index": 0, "message": {"content": "Hi"}, "finish_reason": "length"}]}))


def test_a_client_is_served() -> None:
    with serving(Knobs(key="k", models=("one", "two"))) as server:
        seen = asked(f"{server.base_url}/v1", "k")
    assert causes(seen) == []
    assert [a.step for a in seen.answers if not a.ok] == ["root", "health", "version", "tools"]
    # a server without a parser for tool calls refuses them
    assert seen.models == ("one", "two")
    assert seen.model == "one"
    stream = seen.answer("stream")
    assert stream is not None
    assert stream.text
    assert stream.finish_reason == "length"
    assert stream.events >= 5


def test_the_version_of_vllm_is_read() -> None:
    with answering(vllm(GOOD, events(CHUNK, END))) as root:  # type: ignore[arg-type]
        seen = asked(f"{root}/v1")
    assert seen.version == "0.32.0"
    assert seen.context_tokens == 4096
    assert causes(seen) == []


def test_no_key_and_a_wrong_key() -> None:
    with serving(Knobs(key="sk-right")) as server:
        assert causes(asked(f"{server.base_url}/v1"))[0] == "key-missing"
        assert causes(asked(f"{server.base_url}/v1", "sk-wrong"))[0] == "key-wrong"


@pytest.mark.parametrize("key", ["sk-right\n", " sk-right", "'sk-right'", '"sk-right"', "Bearer sk-right", "sk- right"])
def test_a_key_with_what_does_not_belong_to_it(key: str) -> None:
    with serving(Knobs(key="sk-right")) as server:
        seen = asked(f"{server.base_url}/v1", key)
    found = causes(seen)
    if key.strip() == "sk-right":
        assert found == []  # the header is the same; a client that sends it raw is judged by its own error
    else:
        assert found[0] == "key-with-blank"
        assert found.count("key-wrong") == 0
    assert "sk-right" not in str(seen)


def test_a_key_that_belongs_in_another_header() -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        return MODELS if headers.get("x-api-key") == "k" else UNAUTHORIZED

    with answering(answer) as root:
        assert causes(asked(f"{root}/v1", "k"))[0] == "key-in-another-header"


def test_the_base_url_lacks_v1() -> None:
    with serving(Knobs()) as server:
        seen = asked(server.base_url)
    assert causes(seen)[0] == "base-url-without-v1"


@pytest.mark.parametrize("path", ["/v1/v1", "/v1/chat/completions", "/v1/completions"])
def test_the_base_url_holds_too_much(path: str) -> None:
    with serving(Knobs()) as server:
        seen = asked(f"{server.base_url}{path}")
    assert causes(seen)[0] == "base-url-with-v1-twice"


def test_a_model_that_is_not_served_and_the_nearest_that_is() -> None:
    refused = Reply(404, json.dumps({"error": {"message": "The model `n` does not exist.", "param": "model"}}))
    with answering(vllm(refused)) as root:  # type: ignore[arg-type]
        seen = asked(f"{root}/v1", model="M2")
    assert causes(seen)[0] == "model-id-unknown"
    assert "the nearest is m" in str(judge_endpoint(seen).findings[0].message)


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert causes(asked(f"http://127.0.0.1:{port}/v1"))[0] == "connection-refused"


def test_a_name_that_does_not_resolve() -> None:
    assert causes(asked("http://no-such-host.invalid:8000/v1")) == ["host-unreachable"]


@pytest.mark.parametrize("words", [b"SSH-2.0-OpenSSH_9.2\r\n", b"-ERR unknown command\r\n", b"\x00\x01\x02\x03hello\n"])
def test_a_program_that_speaks_no_http(words: bytes) -> None:
    with saying(words) as root:
        seen = asked(f"{root}/v1")
    assert causes(seen)[0] == "port-of-another-program"
    assert seen.answers[0].trouble in (Trouble.NOT_HTTP, Trouble.CLOSED)


def test_a_program_that_names_itself_and_closes() -> None:
    with saying(b"SSH-2.0-OpenSSH_9.2\r\n") as root:
        found = judge_endpoint(asked(f"{root}/v1")).findings[0]
    assert "an SSH server" in str(found.message)


@pytest.mark.parametrize(
    "chat",
    [Reply(418, "teapot"), Reply(402, '{"error":{"message":"no balance"}}'), Reply(400, '{"error":{"message":"?"}}')],
)
def test_an_answer_that_no_rule_knows_serves_no_client(chat: Reply) -> None:
    with answering(vllm(chat)) as root:  # type: ignore[arg-type]
        (found,) = judge_endpoint(asked(f"{root}/v1")).findings
    assert found.rule.name == "client-not-served"
    assert str(chat.status) in str(found.message)
    assert chat.body[-12:] in str(found.message)


def test_everything_refused_and_no_rule_knows_why() -> None:
    with answering(lambda *_: Reply(403, '{"message":"Forbidden"}')) as root:
        assert causes(asked(f"{root}/v1")) == ["client-not-served"]


def test_an_api_below_another_path() -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        return Reply(200, "") if path == "/health" else NOT_FOUND

    with answering(answer) as root:  # type: ignore[arg-type]
        assert causes(asked(f"{root}/v1")) == ["route-unknown"]


def test_the_context_s_size_is_not_the_status() -> None:
    text = (
        "This model's maximum context length is 16 tokens. However, you requested 31 tokens (30 in the messages, 1 in "
        "the completion)."
    )
    with answering(vllm(Reply(400, json.dumps({"error": {"message": text, "code": 400}})))) as root:  # type: ignore[arg-type]
        found = judge_endpoint(asked(f"{root}/v1")).findings[0]
    assert str(found.message) == "31 tokens were asked for, 1 of them for the answer, and 16 fit in the context"


def test_a_server_that_closes_at_once() -> None:
    with saying(b"") as root:
        assert causes(asked(f"{root}/v1")) == ["stream-cut"]


def test_a_server_that_never_answers() -> None:
    with saying(b"", hold=True) as root:
        seen = probe(Asked(f"{root}/v1", bound_s=0.3))
    assert causes(seen) == ["client-timeout"]


def test_tls_to_a_plain_port() -> None:
    with serving(Knobs()) as server:
        url = server.base_url.replace("http://", "https://")
        assert causes(asked(f"{url}/v1")) == ["tls-to-plain-port"]


def test_plain_to_a_tls_port_and_its_certificate() -> None:
    with answering(vllm(GOOD), tls=True) as root:  # type: ignore[arg-type]
        assert causes(asked(f"{root}/v1")) == ["certificate-refused"]
        assert causes(asked(f"{root.replace('https', 'http')}/v1"))[0] == "tls-to-plain-port"


@pytest.mark.parametrize(
    ("server", "body", "name"),
    [
        ("test", "Ollama is running", "Ollama"),
        ("llama.cpp", "{}", "llama.cpp"),
        ("TornadoServer/6.4", PAGE, "Jupyter"),
        ("nginx/1.27.0", "<h1>Welcome to nginx!</h1>", "nginx"),
        ("uvicorn", "<html><title>Open WebUI</title></html>", "Open WebUI"),
    ],
)
def test_another_program_on_the_port(server: str, body: str, name: str) -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], sent: str) -> Reply:
        return Reply(200, body, "text/html") if path == "/" else Reply(404, body, "text/html")

    with answering(answer, server) as root:
        report = judge_endpoint(asked(f"{root}/v1"))
    found = next(f for f in report.findings if f.rule.name == "port-of-another-program")
    assert name in str(found.message)
    assert found.severity is Severity.ERROR


def test_ollama_with_its_openai_routes_is_only_remarked_on() -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        if path == "/":
            return Reply(200, "Ollama is running", "text/plain")
        if path == "/v1/models":
            return MODELS
        stream = '"stream":true' in body.replace(" ", "")
        return (
            Reply(200, events(CHUNK, END), "text/event-stream") if stream else GOOD if method == "POST" else NOT_FOUND
        )

    with answering(answer) as root:
        seen = asked(f"{root}/v1")
    assert causes(seen) == []
    assert [f.rule.name for f in judge_endpoint(seen).findings] == ["port-of-another-program"]


@pytest.mark.parametrize(
    "reply", [Reply(200, PAGE, "text/html"), Reply(302, "", "text/html", {"location": "https://login.example/"})]
)
def test_a_page_or_a_redirect_instead_of_json(reply: Reply) -> None:
    with answering(lambda *_: reply) as root:
        assert "html-instead-of-json" in causes(asked(f"{root}/v1"))[:2]


@pytest.mark.parametrize(
    ("status", "name"), [(504, "gateway-timeout"), (502, "gateway-timeout"), (503, "server-unavailable")]
)
def test_a_gateway_without_its_server(status: int, name: str) -> None:
    page = f"<html><head><title>{status}</title></head><center>nginx/1.27.0</center></html>"
    with answering(lambda *_: Reply(status, page, "text/html"), "nginx/1.27.0") as root:
        assert causes(asked(f"{root}/v1"))[0] == name


@pytest.mark.parametrize(
    ("status", "message", "name"),
    [
        (413, "Request Entity Too Large", "request-body-too-large"),
        (429, "Rate limit reached", "server-unavailable"),
        (
            500,
            "EngineCore encountered an issue. See stack trace (above) for the root cause.",
            "engine-dead-behind-server",
        ),
        (400, "As of transformers v4.44, default chat template is no longer allowed", "model-without-chat-template"),
        (400, "Conversation roles must alternate user/assistant/user/assistant/...", "message-order-refused"),
        (400, "Can only get item pairs from a mapping.", "chat-template-fails"),
        (400, "[{'type': 'extra_forbidden', 'loc': ('body', 'max_tokens')}]", "field-unknown"),
        (404, "The model does not support Chat Completions API", "endpoint-not-of-the-model"),
    ],
)
def test_a_chat_that_is_refused(status: int, message: str, name: str) -> None:
    reply = Reply(status, json.dumps({"error": {"message": message, "type": "BadRequestError", "code": status}}))
    with answering(vllm(reply)) as root:  # type: ignore[arg-type]
        assert causes(asked(f"{root}/v1"))[0] == name


def test_the_demo_server() -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        if path == "/health":
            return Reply(200, "")
        return Reply(405, '{"detail":"Method Not Allowed"}') if path == "/generate" else NOT_FOUND

    with answering(answer) as root:
        assert "demo-entry-point" in causes(asked(f"{root}/v1"))[:2]


def test_tools_without_a_parser_are_a_warning_for_who_sends_none() -> None:
    refusal = {
        "error": {"message": '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'}
    }
    with answering(vllm(GOOD, events(CHUNK, END), Reply(400, json.dumps(refusal)))) as root:  # type: ignore[arg-type]
        seen = asked(f"{root}/v1")
    assert causes(seen) == []
    assert "tools-without-parser" in [f.rule.name for f in judge_endpoint(seen).findings]


def test_a_stream_that_is_cut() -> None:
    with serving(Knobs(cut_streams=True)) as server:
        assert causes(asked(f"{server.base_url}/v1"))[0] == "stream-cut"


def test_a_stream_that_is_buffered() -> None:
    stream = events(*[CHUNK] * 40, END)
    with answering(vllm(GOOD, stream), "nginx/1.27.0") as root:  # type: ignore[arg-type]
        report = judge_endpoint(asked(f"{root}/v1"))
    assert "stream-buffered-by-proxy" in [f.rule.name for f in report.findings]


def test_an_answer_without_text() -> None:
    with answering(vllm(GOOD, events(END))) as root:  # type: ignore[arg-type]
        report = judge_endpoint(asked(f"{root}/v1"))
    assert "answer-empty" in [f.rule.name for f in report.findings]


def test_a_proxy_of_the_environment_that_cannot_reach_the_server() -> None:
    with ExitStack() as stack:
        root = stack.enter_context(answering(vllm(GOOD, events(CHUNK, END))))  # type: ignore[arg-type]
        proxy = stack.enter_context(answering(lambda *_: Reply(503, "no route", "text/plain"), "squid/6.6"))
        seen = asked(f"{root}/v1", http_proxy=proxy)
        assert causes(seen) == ["proxy-from-environment"]
        assert causes(asked(f"{root}/v1", http_proxy=proxy, no_proxy="127.0.0.1")) == []
        assert causes(asked(f"{root}/v1", http_proxy=proxy, NO_PROXY="*")) == []
        assert causes(asked(f"{root}/v1", https_proxy=proxy)) == []


def found(evidence: Evidence) -> list[tuple[str, str]]:
    return [(f.rule.name, str(f.message)) for f in judge_endpoint(evidence).findings if f.severity is Severity.ERROR]


@pytest.mark.parametrize(
    "body",
    ['{"error":"upstream failed"}', '{"error":{"message":"upstream failed"}}', '{"code":500,"msg":"upstream failed"}'],
)
def test_an_error_under_200_is_told_with_its_text(body: str) -> None:
    with answering(vllm(Reply(200, body), events(CHUNK, END))) as url:  # type: ignore[arg-type]
        seen = asked(f"{url}/v1")
    ((name, text),) = found(seen)
    assert name == "answer-without-choices"
    assert "upstream failed" in text
    chat = seen.answer("chat")
    assert chat is not None
    assert "upstream failed" in chat.quoted


def test_an_error_inside_a_stream_is_no_cut() -> None:
    broken = {"error": {"message": "EngineCore encountered an issue", "code": 500}}
    with answering(vllm(GOOD, events(CHUNK, broken))) as url:  # type: ignore[arg-type]
        told = found(asked(f"{url}/v1"))
    assert "stream-cut" not in [name for name, _ in told]
    assert [name for name, _ in told] == ["engine-dead-behind-server", "answer-without-choices"]
    assert "EngineCore encountered an issue" in told[1][1]
    odd = {"error": {"message": "the moon is full"}}
    with answering(vllm(GOOD, events(CHUNK, odd))) as url:  # type: ignore[arg-type]
        ((name, text),) = found(asked(f"{url}/v1"))
    assert (name, "the moon is full" in text, "stream" in text) == ("answer-without-choices", True, True)


def test_json_in_place_of_a_stream_is_told() -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        if '"stream":true' in body.replace(" ", ""):
            return Reply(200, '{"error":"no streams here"}')
        return vllm(GOOD)(method, path, headers, body)  # type: ignore[operator, no-any-return]

    with answering(answer) as url:
        ((name, text),) = found(asked(f"{url}/v1"))
    assert name == "answer-without-choices"
    assert "no streams here" in text


@pytest.mark.parametrize("key", [None, "sk-right"])
def test_a_password_that_a_proxy_asks_for_is_no_api_key(key: str | None) -> None:
    refused = Reply(401, "<html>401</html>", "text/html", {"WWW-Authenticate": 'Basic realm="models"'})
    with answering(lambda *_: refused) as url:
        (name, text), *_ = found(asked(f"{url}/v1", key))
    assert name == "key-in-another-header"
    assert "user name and a password (HTTP Basic)" in text
    assert "--api-key" not in text
