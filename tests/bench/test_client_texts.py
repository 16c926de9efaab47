"""What real clients print when something stands in their way, judged as a text: openai-python, curl and urllib."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping

import pytest

from tests.bench.test_probe import NOT_FOUND, PAGE, UNAUTHORIZED, vllm
from tests.fakes.wrong_server import Reply, answering, saying
from trimtab.rules.clients import judge_text

OPENAI = """
import sys
from openai import OpenAI
client = OpenAI(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=0, timeout=2)
done = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}], stream=len(sys.argv) > 3)
print(done.choices[0].message.content if len(sys.argv) == 3 else [c.choices[0].delta.content for c in done])
"""
URLLIB = "import json, sys, urllib.request as u; print(json.load(u.urlopen(sys.argv[1] + '/models', timeout=2)))"


def said(*argv: str) -> list[str]:
    env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False, env=env)
    return (done.stdout + done.stderr).splitlines()


def openai(url: str, key: str = "k", *stream: str) -> list[str]:
    return said(sys.executable, "-c", OPENAI, url, key, *stream)


def urllib(url: str) -> list[str]:
    return said(sys.executable, "-c", URLLIB, url)


def curl(url: str, *more: str) -> list[str]:
    return said("curl", "-sS", "-v", "--max-time", "2", *more, f"{url}/models")


def first(lines: list[str]) -> str:
    report = judge_text(lines)
    assert report.findings, lines[-5:]
    cause = report.findings[0].rule.cause
    return cause.value if cause else report.findings[0].rule.name


def error(message: str, status: int = 400, **more: object) -> Reply:
    body = {"error": {"message": message, "type": "BadRequestError", "param": None, "code": status, **more}}
    return Reply(status, json.dumps(body))


REFUSALS = [
    (UNAUTHORIZED, {"key-missing", "key-wrong"}),
    (NOT_FOUND, {"path-without-v1"}),
    (error("The model `x` does not exist.", 404, param="model"), {"model-id-unknown"}),
    (
        error(
            "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input "
            "tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input "
            "prompt."
        ),
        {"context-exceeded"},
    ),
    (error('"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set'),
     {"tool-parser-missing"}),
    (error("[{'type': 'extra_forbidden', 'loc': ('body', 'x'), 'msg': 'Extra inputs are not permitted'}]"),
     {"unknown-field"}),
    (error("temperature must be non-negative, got -1.0."), {"field-value-refused"}),
    (error("Conversation roles must alternate user/assistant/user/assistant/..."), {"message-order-refused"}),
    (error("At most 1 image(s) may be provided in one request."), {"multimodal-limit"}),
    (error("The provided JSON schema contains features not supported by xgrammar."), {"schema-unsupported"}),
    (error("EngineCore encountered an issue. See stack trace (above) for the root cause.", 500),
     {"engine-dead-unexplained"}),
    (Reply(504, f"{PAGE}<title>504 Gateway Time-out</title>", "text/html"), {"gateway-timeout"}),
    (Reply(502, "<html><title>502 Bad Gateway</title></html>", "text/html"), {"gateway-timeout"}),
    (Reply(503, "no healthy upstream", "text/plain"), {"server-unavailable"}),
    (Reply(429, '{"error":{"message":"Rate limit reached"}}'), {"server-unavailable"}),
    (Reply(413, "<html><title>413 Request Entity Too Large</title></html>", "text/html"), {"request-body-too-large"}),
    (Reply(200, PAGE, "text/html"), {"html-instead-of-json", "answer-without-choices"}),
    (Reply(200, "", "text/html"), {"html-instead-of-json", "answer-without-choices"}),
    (Reply(200, '{"error":"upstream failed"}'), {"answer-without-choices"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reply", "causes"), REFUSALS, ids=lambda v: "-".join(sorted(v)) if isinstance(v, set | frozenset) else str(v)[:60]
)
def test_openai_python_is_refused(reply: Reply, causes: set[str]) -> None:
    with answering(vllm(reply)) as root:  # type: ignore[arg-type]
        assert first(openai(f"{root}/v1")) in causes


@pytest.fixture
def nowhere() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    return f"http://127.0.0.1:{port}/v1"


def test_nothing_listens(nowhere: str) -> None:
    for lines in (openai(nowhere), urllib(nowhere), curl(nowhere)):
        assert first(lines) == "connection-refused"


def test_a_name_that_does_not_resolve() -> None:
    url = "http://no-such-host.invalid:8000/v1"
    for lines in (openai(url), urllib(url), curl(url)):
        assert first(lines) == "host-unreachable"


def test_tls_to_a_plain_port() -> None:
    with answering(vllm(NOT_FOUND)) as root:  # type: ignore[arg-type]
        url = root.replace("http://", "https://") + "/v1"
        for lines in (openai(url), urllib(url), curl(url)):
            assert first(lines) == "tls-to-plain-port"


def test_a_certificate_that_nobody_trusts() -> None:
    with answering(vllm(NOT_FOUND), tls=True) as root:  # type: ignore[arg-type]
        for lines in (openai(f"{root}/v1"), urllib(f"{root}/v1"), curl(f"{root}/v1")):
            assert first(lines) == "certificate-refused"


def test_a_program_that_speaks_no_http() -> None:
    with saying(b"SSH-2.0-OpenSSH_9.2\r\n" * 3) as root:
        for lines in (urllib(f"{root}/v1"), curl(f"{root}/v1")):
            assert first(lines) in ("not-vllm-port", "stream-cut")


def test_no_answer_in_time() -> None:
    with saying(b"", hold=True) as root:
        for lines in (openai(f"{root}/v1"), urllib(f"{root}/v1"), curl(f"{root}/v1")):
            assert first(lines) == "client-timeout"


def test_an_answer_that_is_cut() -> None:
    def answer(method: str, path: str, headers: Mapping[str, str], body: str) -> Reply:
        return Reply(200, '{"choices": [', cut=True)

    with answering(answer) as root:
        for lines in (openai(f"{root}/v1"), urllib(f"{root}/v1"), curl(f"{root}/v1")):
            assert first(lines) == "stream-cut"


def test_a_key_that_no_header_takes(nowhere: str) -> None:
    assert first(openai(nowhere, "sk-l\u00f6cal")) == "key-with-blank"


def test_a_key_in_another_header() -> None:
    with answering(lambda *_: UNAUTHORIZED) as root:
        assert first(curl(f"{root}/v1", "-H", "x-api-key: k")) == "key-header-wrong"


def test_curl_is_there() -> None:
    assert shutil.which("curl")


def test_a_page_for_json() -> None:
    with answering(lambda *_: Reply(200, PAGE, "text/html")) as root:
        assert first(urllib(f"{root}/v1")) == "html-instead-of-json"
        assert first(curl(f"{root}/v1")) == "html-instead-of-json"
