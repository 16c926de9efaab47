"""The client gave up before the answer was there.

What it does: reads the read time-outs of client libraries, where no gateway is named.
Why it matters: the answer takes longer than the client waits (a queue, a long prompt, a long answer that is not
    streamed); its retries send the same work again and make the queue longer.
How to fix: raise the client's time-out, stream, lower max_tokens, and set max_retries low; look at the queue:
    trimtab top, or num_requests_waiting in /metrics.
When to ignore: never: the work was done for nothing.
Sources: openai-python (timeout 600 s, max_retries 2), undici (headersTimeout, bodyTimeout 300 s), curl error 28,
    Go's Client.Timeout.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.evidence import Trouble
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, POSSIBLE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"ReadTimeout|read timed out|APITimeoutError|request timed out|litellm\.Timeout",
    r"timeout of \d+ ?ms exceeded|ESOCKETTIMEDOUT|ECONNABORTED",
    r"UND_ERR_(?:HEADERS|BODY)_TIMEOUT|HeadersTimeoutError|BodyTimeoutError|Body Timeout Error|Headers Timeout Error",
    r"context deadline exceeded|Client\.Timeout exceeded",
    r"(?:operation|resolving|request) timed out after|aborted due to timeout|curl: \(28\)(?!.*connect)",
    r"\b(?:TimeoutError|socket\.timeout): (?:the read operation )?timed out",
    r"HttpClient\.Timeout",
    r"SocketTimeoutException|deadline exceeded|timeout awaiting response|(?:response|request|headers) timeout",
    r"(?:asyncio|concurrent|ServerTimeout|SocketTimeout)\S*Timeout\w*",
)


def check(context: ClientContext) -> Iterator[Finding]:
    late = context.troubled(Trouble.TIMEOUT)
    hit = context.said(*PATTERNS) if not context.probed else None
    if late is not None or hit is not None:
        shown = late if late is not None else hit
        assert shown is not None
        yield context.finding(
            shown,
            msg(
                "what listens there takes connections and does not answer GET /: it hangs, or speaks no HTTP",
                zh="那里的程序接受连接，但不回答 GET /：它已挂起，或不是 HTTP 服务",
            )
            if late is not None and late.step == "root"
            else msg(
                "the client waits less long than the answer takes: raise its time-out, stream, and lower its retries",
                zh="客户端的等待时间短于回答所需：请提高超时、使用流式输出，并减少重试",
            ),
            POSSIBLE if context.with_status(502, 504) else LIKELY,
        )


RULE = Rule(
    code="CLT034",
    name="client-timeout",
    severity=Severity.ERROR,
    summary=msg(
        "The client gave up before the answer was there.",
        zh="客户端在得到回答之前就放弃了。",
    ),
    check=check,
    cause=Cause.CLIENT_TIMEOUT,
    sources=("https://github.com/openai/openai-python#timeouts",),
    bad=(
        Example(
            "openai.APITimeoutError: Request timed out.\n",
        ),
        Example(
            "AxiosError: timeout of 60000ms exceeded\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "trouble": "timeout", "detail": "no '
            'answer within 30 s"}]}\n',
        ),
    ),
    good=(
        Example(
            "httpx.ConnectTimeout: timed out\n",
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 200}]}\n',
        ),
    ),
)
