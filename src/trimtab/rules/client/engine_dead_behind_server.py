"""The engine behind the server is dead: every request gets 500.

What it does: reads the errors that vLLM answers once its engine ended.
Why it matters: the API server outlives its engine for a while and answers 500 to all: what ended the engine stands
    further up in the server's log.
How to fix: read the server's log: trimtab doctor SERVER.log; then start it again.
When to ignore: never: nothing is served.
Sources: vllm/v1/engine/exceptions.py (EngineDeadError), vLLM 0.33; vllm/engine/async_llm_engine.py, vLLM 0.4 to
    0.10.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import POSSIBLE, VAGUE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"EngineDeadError|EngineCore encountered an issue",
    r"background loop (?:has errored already|is stopped)|engine loop is not running",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    bad = context.with_status(500)
    if hit is not None or bad:
        yield context.finding(
            hit if hit is not None else bad,
            msg(
                "the engine is dead, or failed on this request: the server's log says why, above this line",
                zh="引擎已死，或在该请求上出错：原因在服务器日志中此行之前",
            ),
            POSSIBLE if hit is not None else VAGUE,
        )


RULE = Rule(
    code="CLT059",
    name="engine-dead-behind-server",
    severity=Severity.ERROR,
    summary=msg(
        "The engine behind the server is dead: every request gets 500.",
        zh="服务器背后的引擎已死：每个请求都得到 500。",
    ),
    check=check,
    cause=Cause.ENGINE_DEAD_UNEXPLAINED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/engine/exceptions.py",),
    bad=(
        Example(
            "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) "
            "for the root cause.\n",
        ),
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions HTTP/1.1" 500 Internal Server Error\n',
        ),
        Example(
            '{"url": "http://127.0.0.1:8000/v1", "answers": [{"step": "chat", "url": '
            '"http://127.0.0.1:8000/v1/chat/completions", "method": "POST", "status": 500, "body": "Internal '
            'Server Error"}]}\n',
        ),
    ),
    good=(
        Example(
            'INFO:     127.0.0.1:40012 - "POST /v1/chat/completions HTTP/1.1" 200 OK\n',
        ),
    ),
)
