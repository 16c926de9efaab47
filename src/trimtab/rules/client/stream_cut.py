"""The connection ended in the middle of the answer.

What it does: reads bodies and streams that end before their end, and connections that are closed without an answer.
Why it matters: a proxy's limit, a restart, a crash of the engine or a client that gave up cuts the stream: the text
    so far is lost or left half.
How to fix: look in the server's log at that second: trimtab doctor SERVER.log; behind a proxy raise its limits for
    long answers.
When to ignore: when the client itself was stopped.
Sources: RFC 9112 section 8 (incomplete messages); texts of httpx, requests, aiohttp, undici, Go and hyper.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"peer closed connection|IncompleteRead|incomplete chunked|ERR_INCOMPLETE_CHUNKED",
    r"premature close|prematurely closed|ERR_STREAM_PREMATURE_CLOSE",
    r"(?<!KeyboardInterrupt: )\bterminated\b(?! with exception)",
    r"other side closed|UND_ERR_SOCKET|socket hang up|\baborted\b.{0,30}ECONNRESET",
    r"ECONNRESET|connection reset by peer|Connection aborted",
    r"ChunkedEncodingError|TransferEncodingError|ClientPayloadError|payload is not completed",
    r"(?:server|remote end|host) (?:dis|closed )connect(?:ed|ion)? without (?:sending a )?response|Server disconnected",
    r"stream (?:disconnected before completion|closed before|ended (?:unexpectedly|without|before))|error decoding "
    r"response body|unexpected EOF|error reading a body from connection",
    r"RemoteProtocolError",
    r"transfer closed with|curl: \((?:18|52|56|92)\)|empty reply from server|IncompleteMessage|connection closed "
    r"before message completed",
)


def _message() -> Message:
    return msg(
        "the connection ended in the middle of the answer: the server's or the proxy's log at that second says why",
        zh="连接在回答途中断开：服务器或代理在那一刻的日志会说明原因",
    )


def _silent() -> Message:
    return msg(
        "what listens there closes the connection without an answer: it speaks no HTTP, or a proxy has no server "
        "behind it",
        zh="那里的程序不作回答就关闭连接：它不是 HTTP 服务，或代理背后没有服务器",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    cut = context.troubled(Trouble.CUT, Trouble.CLOSED)
    stream = context.answer("stream")
    if cut is not None:
        empty = cut.step == "root" and cut.trouble is Trouble.CLOSED
        yield context.finding(cut, _silent() if empty else _message(), SURE if cut.trouble is Trouble.CUT else LIKELY)
    elif stream is not None and stream.ok and not stream.failed and stream.events and stream.finish_reason is None:
        yield context.finding(stream, _message(), LIKELY)
    elif hit := context.said(*PATTERNS):
        yield context.finding(hit, _message(), LIKELY)


RULE = Rule(
    code="CLT032",
    name="stream-cut",
    severity=Severity.ERROR,
    summary=msg(
        "The connection ended in the middle of the answer.",
        zh="连接在回答途中断开。",
    ),
    check=check,
    cause=Cause.STREAM_CUT,
    sources=("https://www.rfc-editor.org/rfc/rfc9112#section-8",),
    bad=(
        Example(
            "httpx.RemoteProtocolError: peer closed connection without sending complete message body (incomplete "
            "chunked read)\n",
        ),
        Example(
            "TypeError: terminated: other side closed\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "stream", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "trouble": "cut", "events": 3, '
            '"detail": "the stream ended after 3 events"}]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.ReadTimeout: timed out\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "stream", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200, "events": 3, '
            '"finish_reason": "stop"}]}\n',
        ),
    ),
)
