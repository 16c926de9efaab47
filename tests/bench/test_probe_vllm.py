"""The real engine behind the probe: a client is served, and each of its refusals is understood in its own words."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.conftest import DemoServer
from trimtab.bench.probe import Asked, probe
from trimtab.engine.logs import read_log
from trimtab.rules.causes import Cause
from trimtab.rules.clients import judge_endpoint, judge_text
from trimtab.rules.doctor import diagnose
from trimtab.rules.rule import Severity

pytestmark = pytest.mark.vllm

TOOL = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
HELLO = [{"role": "user", "content": "Hello"}]
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def test_a_client_is_served(demo_server: DemoServer) -> None:
    seen = probe(Asked(demo_server.base_url, bound_s=60.0))
    assert seen.version == "0.32.0"
    assert seen.models == ("demo",)
    assert seen.context_tokens == demo_server.max_model_len
    report = judge_endpoint(seen)
    assert [f.rule.name for f in report.findings if f.severity is Severity.ERROR] == []
    assert "tools-without-parser" in [f.rule.name for f in report.findings]


@pytest.mark.parametrize(
    ("path", "cause"),
    [("", Cause.PATH_WITHOUT_V1), ("/v1/v1", Cause.PATH_V1_DOUBLED), ("/v1/chat/completions", Cause.PATH_V1_DOUBLED)],
)
def test_a_wrong_base_url(demo_server: DemoServer, path: str, cause: Cause) -> None:
    root = demo_server.base_url.removesuffix("/v1")
    report = judge_endpoint(probe(Asked(f"{root}{path}", bound_s=60.0)))
    assert report.findings[0].rule.cause is cause


def refused(server: DemoServer, path: str, body: dict[str, Any]) -> str:
    """What vLLM says of a request, as a client that prints status and body."""
    url = f"{server.base_url.removesuffix('/v1')}{path}"
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return f"HTTP {answer.status}"
    except urllib.error.HTTPError as error:
        return f"Error code: {error.code} - {error.read().decode()}"


@pytest.mark.parametrize(
    ("more", "cause"),
    [
        ({"model": "nope"}, Cause.MODEL_ID_UNKNOWN),
        ({"messages": [{"role": "user", "content": "word " * 4000}]}, Cause.CONTEXT_EXCEEDED),
        ({"max_tokens": 100_000}, Cause.CONTEXT_EXCEEDED),
        ({"tools": [TOOL], "tool_choice": "auto"}, Cause.TOOL_PARSER_MISSING),
        ({"tool_choice": "auto"}, Cause.TOOL_CHOICE_REFUSED),
        ({"temperature": -1}, Cause.FIELD_VALUE_REFUSED),
        ({"top_p": 7}, Cause.FIELD_VALUE_REFUSED),
        ({"max_tokens": 0}, Cause.FIELD_VALUE_REFUSED),
        ({"logprobs": True, "top_logprobs": 500}, Cause.FIELD_VALUE_REFUSED),
        ({"messages": []}, Cause.FIELD_VALUE_REFUSED),
        ({"messages": "Hello"}, Cause.FIELD_VALUE_REFUSED),
        ({"messages": [{"role": "user", "content": [IMAGE]}]}, Cause.MULTIMODAL_INPUT_REFUSED),
        ({"structured_outputs": {"grammar": "root ::= ("}}, Cause.SCHEMA_UNSUPPORTED),
        ({"structured_outputs": {"regex": "(", "json": {}}}, Cause.SCHEMA_UNSUPPORTED),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_refusal_of_chat(demo_server: DemoServer, more: dict[str, Any], cause: Cause) -> None:
    said = refused(demo_server, "/v1/chat/completions", {"model": "demo", "messages": HELLO, "max_tokens": 4, **more})
    report = judge_text([said])
    assert report.findings, said
    assert report.findings[0].rule.cause is cause, said


@pytest.mark.parametrize(
    ("path", "body", "cause"),
    [
        ("/v1/embeddings", {"model": "demo", "input": "Hello"}, {Cause.MODEL_TASK_MISMATCH, Cause.PATH_WITHOUT_V1}),
        ("/generate", {"prompt": "Hello"}, {Cause.PATH_WITHOUT_V1, Cause.ROUTE_UNKNOWN}),
    ],
)
def test_a_route_that_is_not_served(
    demo_server: DemoServer, path: str, body: dict[str, Any], cause: set[Cause]
) -> None:
    said = refused(demo_server, path, body)
    report = judge_text([said])
    assert report.findings, said
    assert report.findings[0].rule.cause in cause, said


def test_the_numbers_of_a_prompt_that_is_too_long(demo_server: DemoServer) -> None:
    long = [{"role": "user", "content": "word " * 2500}]
    said = refused(demo_server, "/v1/chat/completions", {"model": "demo", "messages": long})
    assert f"{demo_server.max_model_len:,}" in str(judge_text([said]).findings[0].message)


def test_the_server_s_own_log_is_of_a_server_that_is_well(demo_server: DemoServer) -> None:
    found = diagnose(read_log([demo_server.log.read_bytes()]))
    assert found.cause is None
