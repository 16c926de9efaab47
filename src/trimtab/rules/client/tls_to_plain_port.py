"""The client and the port differ on TLS: https to a plain port, or http to a TLS port.

What it does: reads TLS handshakes that meet plain text, and plain requests that meet TLS.
Why it matters: vLLM speaks plain HTTP unless started with --ssl-keyfile and --ssl-certfile: a handshake with it
    ends in "wrong version number", and its log says "Invalid HTTP request received".
How to fix: write http:// for a plain port, https:// for a TLS port.
When to ignore: never: no request comes through.
Sources: OpenSSL (SSL_R_WRONG_VERSION_NUMBER, SSL_R_HTTP_REQUEST); nginx (status 497); Go's net/http; uvicorn's h11
    and httptools protocols.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

TO_PLAIN = (
    r"wrong[ _]version[ _]number|ERR_SSL_PROTOCOL_ERROR|\bEPROTO\b|packet length too long|record layer failure|"
    r"InvalidContentType|unknown protocol",
    r"server gave HTTP response to HTTPS client|Unsupported or unrecognized SSL message|Invalid HTTP request "
    r"received|first record does not look like a TLS handshake",
)
TO_TLS = (
    r"plain HTTP request was sent to HTTPS port|sent an HTTP request to an HTTPS server|\[SSL: HTTP_REQUEST\]|"
    r"speaking plain HTTP to an SSL",
)


def _message(to_plain: bool) -> Message:
    if to_plain:
        return msg(
            "https:// was asked of a port that speaks plain HTTP: write http://",
            zh="用 https:// 访问了明文 HTTP 端口：请写 http://",
        )
    return msg(
        "http:// was asked of a port that speaks TLS: write https://",
        zh="用 http:// 访问了 TLS 端口：请写 https://",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    answer = context.troubled(Trouble.TLS_TO_PLAIN, Trouble.PLAIN_TO_TLS)
    if answer is not None:
        yield context.finding(answer, _message(answer.trouble is Trouble.TLS_TO_PLAIN), SURE)
    elif hit := context.said(*TO_PLAIN):
        yield context.finding(hit, _message(True), LIKELY)
    elif hit := context.said(*TO_TLS):
        yield context.finding(hit, _message(False), LIKELY)


RULE = Rule(
    code="CLT027",
    name="tls-to-plain-port",
    severity=Severity.ERROR,
    summary=msg(
        "The client and the port differ on TLS: https to a plain port, or http to a TLS port.",
        zh="客户端与端口的 TLS 不一致：https 连明文端口，或 http 连 TLS 端口。",
    ),
    check=check,
    cause=Cause.TLS_TO_PLAIN_PORT,
    sources=("https://docs.openssl.org/master/man3/SSL_get_error/",),
    bad=(
        Example(
            "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)\n",
        ),
        Example(
            "400 The plain HTTP request was sent to HTTPS port\n",
        ),
        Example(
            "WARNING:  Invalid HTTP request received.\n",
        ),
    ),
    good=(
        Example(
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)\n",
        ),
    ),
)
