"""The key comes in a header that the server does not read.

What it does: looks for x-api-key, api-key and an Authorization without Bearer beside a 401, and tries the other
    header itself; and for a demand of user name and password (WWW-Authenticate: Basic).
Why it matters: vLLM reads Authorization: Bearer KEY alone; Anthropic's clients send x-api-key, Azure's api-key, and
    some send the bare key.
How to fix: choose the client's "OpenAI-compatible" provider; for Claude Code set ANTHROPIC_AUTH_TOKEN, which is
    sent as Bearer, instead of ANTHROPIC_API_KEY. A proxy's own password and a key cannot both come: they take the
    same header.
When to ignore: behind a gateway that translates the header.
Sources: vllm/entrypoints/serve/middleware/authenticate.py, vLLM 0.33; Anthropic API reference (x-api-key); Azure
    OpenAI reference (api-key).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import Message, msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"(?P<header>\b(?:x-)?api-key['\"]?\s*[:=])\s*\S",
    r"(?P<header>Authorization: (?!Bearer|Basic|Digest|\*)\S+)",
    r"(?P<header>Authorization: Basic)",
)


def _basic() -> Message:
    return msg(
        "what answers asks for a user name and a password (HTTP Basic), as a proxy before the server does, and not "
        "for an API key: take that demand out of the proxy, or ask the server itself; both need the same header",
        zh="应答方要求用户名和密码（HTTP Basic），通常是服务器前面的代理，而不是 API 密钥："
        "请去掉代理上的该要求，或直接访问服务器；两者使用同一个请求头",
    )


def check(context: ClientContext) -> Iterator[Finding]:
    if context.probed:
        if context.basic is not None:
            yield context.finding(context.basic, _basic(), SURE)
            return
        other = context.answer("other header")
        if other is not None and other.ok and context.evidence.key is not None:
            yield context.finding(
                other,
                msg(
                    "the server takes the key as x-api-key, not as Authorization: Bearer: set the client to that "
                    "provider",
                    zh="服务器以 x-api-key 接收密钥，而不是 Authorization: Bearer：请把客户端设为对应的提供商",
                ),
                SURE,
            )
        return
    refused = context.with_status(401, 403)
    hit = context.said(*PATTERNS)
    if hit is not None and refused:
        yield context.finding(
            (hit, *refused),
            msg(
                "the key came as {header}; vLLM reads Authorization: Bearer KEY alone",
                zh="密钥以 {header} 发送；vLLM 只读取 Authorization: Bearer KEY",
                header=hit["header"].rstrip(":=' "),
            ),
            SURE,
        )


RULE = Rule(
    code="CLT004",
    name="key-in-another-header",
    severity=Severity.ERROR,
    summary=msg(
        "The key comes in a header that the server does not read.",
        zh="密钥放在了服务器不读取的请求头里。",
    ),
    check=check,
    cause=Cause.KEY_HEADER_WRONG,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/serve/middleware/authenticate.py",),
    bad=(
        Example(
            "> x-api-key: sk-local\n< HTTP/1.1 401 Unauthorized\n",
        ),
        Example(
            "curl -H 'Authorization: sk-local' http://127.0.0.1:8000/v1/models\nError: 401 Unauthorized\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "models", "url": '
            '"http://127.0.0.1:8000/v1/models", "status": 401, "asks": "Basic realm=models"}]}\n',
        ),
    ),
    good=(
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "models", "url": '
            '"http://127.0.0.1:8000/v1/models", "status": 401, "asks": "Bearer"}]}\n',
        ),
        Example(
            "> Authorization: Bearer sk-local\n< HTTP/1.1 401 Unauthorized\n",
        ),
        Example(
            "> x-api-key: sk-local\n< HTTP/1.1 200 OK\n",
        ),
    ),
)
