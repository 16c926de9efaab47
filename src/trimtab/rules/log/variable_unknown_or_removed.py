"""A VLLM_ variable is set that this vLLM does not read.

What it does: reads vLLM's own note of an unknown VLLM_ variable.
Why it matters: a variable that was removed does nothing, so that a setting is lost in silence; with VLLM_CONFIGURE
    strictness it ends the start.
How to fix: delete the assignment; for many the flag that took its place is known to `trimtab explain`.
When to ignore: when a plug-in reads the variable.
Sources: vllm/envs.py (validate_environ), vLLM 0.18 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.flags import history
from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import EVERYWHERE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (r"Unknown vLLM environment variable detected: (?P<name>\w+)",)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS, kinds=EVERYWHERE)
    if hit is None:
        return
    known = history(hit["name"])
    if known is not None and known.until is not None:
        message = msg(
            "no vLLM after {version} reads {name}: delete it",
            zh="{version} 之后的 vLLM 不再读取 {name}：请删去",
            version=known.until,
            name=hit["name"],
        )
    else:
        message = msg("this vLLM does not read {name}", zh="此 vLLM 不读取 {name}", name=hit["name"])
    yield context.finding(
        hit, message, SURE, severity=None if hit.entry.kind is EntryKind.EXCEPTION else Severity.WARNING
    )


RULE = Rule(
    code="LOG307",
    name="variable-unknown-or-removed",
    severity=Severity.ERROR,
    summary=msg("A VLLM_ variable is set that this vLLM does not read.", zh="设置了此 vLLM 不读取的 VLLM_ 环境变量。"),
    check=check,
    cause=Cause.VARIABLE_REMOVED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.20.0/vllm/envs.py",),
    bad=(Example("WARNING 11-30 03:43:16 [envs.py:1] Unknown vLLM environment variable detected: VLLM_USE_V1\n"),),
    good=(Example("INFO 11-30 03:43:16 [core.py:1] Initializing a V1 LLM engine (v0.26.0)\n"),),
)
