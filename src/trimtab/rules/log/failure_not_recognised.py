"""The server failed, and no other rule knows the error.

What it does: speaks only where no other rule names a cause, and quotes the most telling lines: what a traceback ends
    with before what the logger calls an error, the first before the last, consequences left out.
Why it matters: the last line of a failed start ("Engine core initialization failed") is almost never the cause; it
    stands above it.
How to fix: read the first quoted line and the traceback above it; search vLLM's issues for its words, without numbers
    and paths. Report it with `trimtab report`.
When to ignore: when the quoted lines belong to another program that writes into the same log.
Sources: vllm/v1/engine/core_client.py and vllm/v1/engine/core.py, which print the consequences, vLLM 0.26.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.logs import Entry, EntryKind
from trimtab.engine.logs.summary import is_consequence
from trimtab.messages import msg
from trimtab.rules.log.context import MOST_EVIDENCE, VAGUE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: LogContext) -> Iterator[Finding]:
    if not context.failed:
        return
    errors = [e for e in context.last_start if e.kind in (EntryKind.EXCEPTION, EntryKind.ERROR)]
    telling = _telling(errors)
    if not telling:
        status = context.facts.exit_status
        yield Finding(
            msg(
                "the server ended with status {status} and its log holds no error",
                zh="服务器以状态码 {status} 退出，日志里没有错误",
                status=status,
            ),
            confidence=VAGUE,
        )
        return
    yield Finding(
        msg(
            "the server failed with an error that no rule knows; the most telling line is: {line}",
            zh="服务器失败，但没有规则认识这个错误；最能说明问题的一行是：{line}",
            line=telling[0].text[:300],
        ),
        evidence=tuple(e.quoted for e in telling[:MOST_EVIDENCE]),
        confidence=VAGUE,
        line=telling[0].line,
    )


def _telling(errors: list[Entry]) -> list[Entry]:
    causes = [e for e in errors if not is_consequence(e.text)]
    ordered = [e for e in causes if e.kind is EntryKind.EXCEPTION] + [e for e in causes if e.kind is EntryKind.ERROR]
    known: list[Entry] = []
    for entry in ordered or errors[:1]:
        words = re.sub(r"^[\w.]+: ", "", entry.text)
        if not any(words in k.text or k.text in entry.text for k in known):
            known.append(entry)
    return known


RULE = Rule(
    code="LOG999",
    name="failure-not-recognised",
    severity=Severity.ERROR,
    summary=msg("The server failed, and no other rule knows the error.", zh="服务器失败，但没有其他规则认识这个错误。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/engine/core_client.py",),
    bad=(
        Example(
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] EngineCore failed to start.\n"
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] Traceback (most recent call last):\n"
            '(EngineCore pid=7) ERROR 11-30 03:43:16 [v1/engine/core.py:1330]   File "/srv/plugin.py", line 3, in go\n'
            "(EngineCore pid=7) ERROR 11-30 03:43:16 [v1/engine/core.py:1330] RuntimeError: the plugin's own words\n"
            "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
            at="line 4: RuntimeError: the plugin's own words",
        ),
    ),
    good=(
        Example(
            "(APIServer pid=1) INFO 11-30 03:43:16 [api_server.py:1] vLLM API server version 0.26.0\n"
            "(APIServer pid=1) INFO:     Application startup complete.\n",
        ),
    ),
)
