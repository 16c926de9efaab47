"""No client is served, and no other rule knows why.

What it does: speaks only where no other rule names a fault of the endpoint, and quotes what was answered.
Why it matters: an answer that no rule knows is no sign that a client is served.
How to fix: read the quoted answer; the log of the server or of the gateway at that second tells more: trimtab doctor
    SERVER.log.
When to ignore: never: the request is not served.
Sources: RFC 9110 section 15 (classes of status codes).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Answer
from trimtab.messages import msg
from trimtab.rules.client.context import VAGUE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

MOST_SAID = 200


def check(context: ClientContext) -> Iterator[Finding]:
    refused = _refused(context) if context.probed else None
    if refused is None:
        return
    yield context.finding(
        refused,
        msg(
            "no client is served, and no rule knows why: {method} {url} came to {status} {said}",
            zh="客户端得不到服务，且没有规则知道原因：{method} {url} 的结果是 {status} {said}",
            method=refused.method,
            url=refused.url,
            status=refused.status or str(refused.trouble or "?"),
            said=(" ".join(refused.body.split()) or refused.detail)[:MOST_SAID],
        ),
        VAGUE,
    )


def _refused(context: ClientContext) -> Answer | None:
    """The request that keeps a client from being served: the answer itself before what leads to it."""
    chat, stream = context.answer("chat"), context.answer("stream")
    if chat is not None and chat.ok:
        return stream if stream is not None and stream.failed else None
    before = (chat, *(context.answer(step) for step in ("models", "root", "connect")))
    return next((answer for answer in before if answer is not None and not answer.ok), None)


RULE = Rule(
    code="CLT999",
    name="client-not-served",
    severity=Severity.ERROR,
    summary=msg(
        "No client is served, and no other rule knows why.",
        zh="客户端得不到服务，但没有其他规则知道原因。",
    ),
    check=check,
    sources=("https://www.rfc-editor.org/rfc/rfc9110#section-15",),
    bad=(
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "models", "url": '
            '"http://127.0.0.1:8000/v1/models", "status": 200}, {"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 402, "body": "no balance"}]}\n',
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "models", "url": '
            '"http://127.0.0.1:8000/v1/models", "status": 403}]}\n',
        ),
    ),
    good=(
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "root", "url": "http://127.0.0.1:8000/", '
            '"status": 404}, {"step": "chat", "url": "http://127.0.0.1:8000/v1/chat/completions", "method": "POST", '
            '"status": 200}]}\n',
        ),
    ),
)
