"""Another program answers on this port.

What it does: reads who answers: server headers, bodies and error texts of Ollama, llama.cpp, TGI, SGLang, nginx,
    Jupyter, Open WebUI and others, or something that speaks no HTTP.
Why it matters: the port was taken by another program, or the URL is of a front end: its paths, fields and models
    are other ones.
How to fix: use the port that vLLM listens on (its log says it, trimtab ps too), or speak to that program as its own
    documentation says.
When to ignore: when that program is the one that is meant.
Sources: The programs' own answers at / and on unknown paths; RFC 9112 section 4 (status line).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PROGRAMS = (
    ("Ollama", r"ollama is running|try pulling it first|\bollama\b.{0,40}(?:404|not found)|^ollama"),
    (
        "llama.cpp",
        r"llama\.cpp|exceed_context_size_error|\"type\": ?\"not_found_error\".{0,80}File Not Found|File Not "
        r"Found.{0,60}not_found_error",
    ),
    (
        "Text Generation Inference",
        r"text-generation-inference|\bTGI\b|\"error_type\": ?\"(?:validation|generation|overloaded)\"",
    ),
    ("SGLang", r"(?<![/\\.-])\bsglang\b(?![/\\.])"),
    ("LM Studio", r"lm ?studio|Unexpected endpoint or method"),
    ("LiteLLM", r"<title>LiteLLM|x-litellm"),
    ("Jupyter", r"(?<![/\\.-])jupyter(?![/\\])|TornadoServer"),
    ("Open WebUI", r"<title>Open WebUI"),
    ("Gradio", r"gradio"),
    ("Streamlit", r"streamlit"),
    ("Grafana", r"<title>Grafana|Found\.</a>.{0,40}/login"),
    ("Prometheus", r"<title>Prometheus"),
    ("Python's http.server", r"SimpleHTTP/|Unsupported method \(.POST.\)"),
    ("a Ray dashboard", r"Ray Dashboard"),
    ("an SSH server", r"SSH-2\.0"),
    ("Redis", r"-ERR (?:wrong number|unknown command)|-DENIED Redis"),
    (
        "a program that speaks no HTTP",
        r"HTTP/0\.9|illegal status line|BadStatusLine|invalid HTTP version|Parse Error: Expected HTTP/|malformed HTTP "
        r"(?:response|status)|HPE_INVALID_CONSTANT|invalid http version parsed|not a valid HTTP response",
    ),
    ("nginx's own page", r"Welcome to nginx"),
    ("Apache's own page", r"Apache2 .{0,20}Default Page|<h1>It works!"),
)


def _named(text: str) -> str | None:
    """The program that an answer shows, by what only it says."""
    return next((name for name, pattern in PROGRAMS if re.search(pattern, text, re.IGNORECASE)), None)


def _message(name: str) -> Message:
    return msg(
        "what answers there is {name}, not vLLM: use vLLM's own port",
        zh="那里应答的是 {name}，不是 vLLM：请使用 vLLM 自己的端口",
        name=name,
    )


def check(context: ClientContext) -> Iterator[Finding]:
    foreign = context.troubled(Trouble.NOT_HTTP)
    if foreign is not None:
        yield context.finding(foreign, _message(_named(foreign.detail) or "a program that speaks no HTTP"), SURE)
        return
    if context.probed:
        models = context.answer("models below /v1") or context.answer("models")
        version = context.answer("version")
        if (
            version is not None
            and version.ok
            and '"version"' in version.body
            and not version.server.lower().startswith("ollama")
        ):
            return
        for answer in context.evidence.answers:
            name = _named(f"{answer.server}\n{answer.body}")
            if name is not None:
                served = models is not None and models.ok
                yield context.finding(
                    answer, _message(name), POSSIBLE if served else LIKELY, Severity.WARNING if served else None
                )
                return
        return
    hit = context.said(*(pattern for _, pattern in PROGRAMS))
    if hit is not None:
        yield context.finding(hit, _message(_named(hit.statement.text) or "?"), LIKELY)


RULE = Rule(
    code="CLT024",
    name="port-of-another-program",
    severity=Severity.ERROR,
    summary=msg(
        "Another program answers on this port.",
        zh="该端口上应答的是另一个程序。",
    ),
    check=check,
    cause=Cause.NOT_VLLM_PORT,
    sources=("https://www.rfc-editor.org/rfc/rfc9112#section-4",),
    bad=(
        Example(
            "curl: (1) Received HTTP/0.9 when not allowed\n",
        ),
        Example(
            "error: model 'qwen' not found, try pulling it first\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:11434/v1", "answers": [{"step": "root", "url": "http://127.0.0.1:11434/", '
            '"status": 200, "body": "Ollama is running"}, {"step": "models below /v1", "url": '
            '"http://127.0.0.1:11434/v1/models", "status": 404}]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "version", "url": '
            '"http://127.0.0.1:8000/version", "status": 200, "body": "{\\"version\\":\\"0.32.0\\"}"}, {"step": '
            '"chat", "url": "http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, '
            '"server": "uvicorn"}]}\n',
        ),
    ),
)
