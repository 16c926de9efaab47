"""The server's certificate is not trusted, expired or for another name.

What it does: reads failures of certificate verification.
Why it matters: a self-signed certificate, one of an inner authority, or one for another host: the client ends the
    connection before it asks.
How to fix: give the client the authority (SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE), use the name in
    the certificate, or renew it; a clock that is wrong has the same effect.
When to ignore: never switch verification off across a network that others use.
Sources: RFC 5280; OpenSSL, Node.js, Go x509 and rustls error texts.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
    r"self[- ]signed certificate|SELF_SIGNED_CERT|UNABLE_TO_(?:VERIFY|GET)",
    r"unable to (?:verify the first|get local issuer) certificate",
    r"certificate (?:has )?expired|CERT_HAS_EXPIRED|CertificateExpired",
    r"ERR_TLS_CERT_ALTNAME|does not match certificate|hostname mismatch|NotValidForName",
    r"\bx509:|PKIX path|CertPathValidator|unable to find valid certification path",
    r"SSL certificate problem|invalid peer certificate|UnknownIssuer|ERR_CERT_",
)


def check(context: ClientContext) -> Iterator[Finding]:
    answer = context.troubled(Trouble.CERTIFICATE)
    shown = answer if answer is not None else context.said(*PATTERNS)
    if shown is not None:
        yield context.finding(
            shown,
            msg(
                "the server's certificate is refused: give the client its authority, or use the name that it is for",
                zh="服务器证书被拒绝：请把签发机构提供给客户端，或使用证书所属的域名",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT028",
    name="certificate-refused",
    severity=Severity.ERROR,
    summary=msg(
        "The server's certificate is not trusted, expired or for another name.",
        zh="服务器证书不受信任、已过期，或属于其他域名。",
    ),
    check=check,
    cause=Cause.CERTIFICATE_REFUSED,
    sources=("https://www.rfc-editor.org/rfc/rfc5280",),
    bad=(
        Example(
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate (_ssl.c:1006)\n",
        ),
        Example(
            "Error: unable to verify the first certificate\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "connect", "url": '
            '"https://127.0.0.1:8443/v1", "trouble": "certificate"}]}\n',
        ),
    ),
    good=(
        Example(
            "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)\n",
        ),
    ),
)
