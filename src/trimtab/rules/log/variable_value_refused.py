"""An environment variable's value is refused.

What it does: reads vLLM's refusals of a variable's value, and the errors of Python where a number or level was
    awaited.
Why it matters: variables are read late and by every process; the error is often far from the assignment. A Kubernetes
    service called vllm sets VLLM_PORT to an address.
How to fix: correct or delete the assignment; rename a service called vllm, or set enableServiceLinks: false.
When to ignore: never; the process ended.
Sources: vllm/envs.py (env_with_choices, get_vllm_port), vllm/logger.py, vLLM 0.6 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"Invalid value '(?P<value>[^']*)' for (?P<name>[A-Z][A-Z0-9_]{3,})",
    r"(?P<name>VLLM_PORT) '(?P<value>[^']*)' (?:appears to be a URI|must be a valid integer)",
    r"Invalid environment variable (?P<name>\w+) (?P<value>\S+)",
    (
        r"(?P<name>VLLM_[A-Z0-9_]+)(?:='?(?P<value>[^' ]+)'?)? (?:must be (?!used)|is not a valid|should be|"
        r"environment variable must)"
    ),
    r"invalid literal for int\(\) with base 10: '(?P<value>\w+://\S+)'",
    r"(?P<name>HIP_VISIBLE_DEVICES)='?(?P<value>[^' ]*)'? vs CUDA_VISIBLE_DEVICES",
    r"Unknown level: '?(?P<value>\w+)'?|Unable to configure (?:root )?logger",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        framed = context.framed(READ)
        parsed = re.match(PARSED, framed.entry.text) if framed is not None else None
        if framed is None or parsed is None or parsed["value"].startswith(("MIG-", "GPU-")):
            return
        name = re.search(r"[\"'](VLLM_[A-Z0-9_]+|[A-Z0-9_]{6,})[\"']", " ".join(framed.entry.frames))
        message = msg(
            "an environment variable holds a value that is no number: {name} {value}",
            zh="某个环境变量的值不是数字：{name} {value}",
            name=name[1] if name else "",
            value=parsed["value"],
        )
        yield context.finding(framed, message, LIKELY)
        return
    if words.group(hit, "name") == "VLLM_CPU_KVCACHE_SPACE":
        return
    message = msg(
        "an environment variable's value is refused: {said}", zh="环境变量的值被拒绝：{said}", said=words.said(hit)
    )
    yield context.finding(hit, message, SURE)


READ = r"vllm/envs\.py|vllm/logger\.py"
PARSED = (
    r"ValueError: (?:invalid literal for int\(\) with base \d+|could not convert string to float): '?(?P<value>[^']*)'?"
)


RULE = Rule(
    code="LOG308",
    name="variable-value-refused",
    severity=Severity.ERROR,
    summary=msg("An environment variable's value is refused.", zh="环境变量的值被拒绝。"),
    check=check,
    cause=Cause.VARIABLE_INVALID,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/envs.py",),
    bad=(
        Example(
            "ValueError: Invalid value 'thread' for VLLM_WORKER_MULTIPROC_METHOD. Valid options: ['spawn', 'fork'].\n"
        ),
        Example(
            "ValueError: VLLM_PORT 'tcp://10.0.0.1:8000' appears to be a URI. This may be caused by a "
            "Kubernetes service discovery issue,check the warning in: "
            "https://docs.vllm.ai/en/stable/serving/env_vars.html\n"
        ),
        Example("ValueError: Unknown level: 'LOUD'\n"),
    ),
    good=(Example("ValueError: invalid literal for int() with base 10: 'MIG-1234'\n"),),
)
