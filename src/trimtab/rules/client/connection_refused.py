"""Nothing listens at this host and port.

What it does: reads a refused connection, and looks what else listens on this host where the URL is of this host.
Why it matters: the server is not started yet, has died, has another port, or listens on another address (vLLM loads
    for minutes before it answers).
How to fix: see whether it runs (trimtab ps), read its log, and use the host and port of its --host and --port.
When to ignore: while it loads: it will answer.
Sources: connect(2) (ECONNREFUSED); texts of curl, httpx, requests, aiohttp, undici and Go's net.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"connection refused",
    r"ECONNREFUSED",
    r"\[Errno (?:111|61)\]|WinError 10061|os error (?:111|61|10061)",
    r"actively refused",
    r"connect call failed",
    r"couldn't connect to server|failed to connect to \S+ port",
    r"cannot connect to host",
    r"java\.net\.ConnectException|ConnectException: Failed to connect",
)
WEAK = (
    r"All connection attempts failed",
    r"APIConnectionError",
    r"\bConnection error\b(?! code)",
    r"fetch failed",
    r"error sending request",
    r"local proxy failed|本地代理失败",
)


def _message() -> Message:
    return msg(
        "nothing listens at that host and port: the server is not up, or has another address",
        zh="该主机和端口上没有程序在监听：服务器没有运行，或地址不同",
    )


MOST_SHOWN = 6


def check(context: ClientContext) -> Iterator[Finding]:
    refused = context.troubled(Trouble.REFUSED)
    if refused is not None:
        heard = ", ".join(context.evidence.listening[:MOST_SHOWN])
        yield context.finding(
            refused,
            msg(
                "nothing listens at {url}; what listens here: {heard}",
                zh="{url} 上没有程序在监听；本机在监听的有：{heard}",
                url=context.evidence.url,
                heard=heard,
            )
            if heard
            else msg("nothing listens at {url}", zh="{url} 上没有程序在监听", url=context.evidence.url),
            SURE,
        )
    elif hit := context.said(*PATTERNS):
        yield context.finding(hit, _message(), LIKELY)
    elif hit := context.said(*WEAK):
        yield context.finding(hit, _message(), POSSIBLE)


RULE = Rule(
    code="CLT021",
    name="connection-refused",
    severity=Severity.ERROR,
    summary=msg(
        "Nothing listens at this host and port.",
        zh="该主机和端口上没有程序在监听。",
    ),
    check=check,
    cause=Cause.CONNECTION_REFUSED,
    sources=("https://man7.org/linux/man-pages/man2/connect.2.html",),
    bad=(
        Example(
            "httpx.ConnectError: [Errno 111] Connection refused\n",
        ),
        Example(
            "Error: connect ECONNREFUSED 127.0.0.1:8000\n",
        ),
        Example(
            "openai.APIConnectionError: Connection error.\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "connect", "url": "http://127.0.0.1:8000/v1",'
            ' "trouble": "refused"}], "listening": ["127.0.0.1:8001 (python)"]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200}]}\n',
        ),
    ),
)
