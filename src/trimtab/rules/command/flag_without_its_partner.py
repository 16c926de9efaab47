"""A flag that does nothing, or is refused, without another one beside it.

What it does: looks for flags whose partner is not given: tool parsers, LoRA, expert balancing, NUMA, logging.
Why it matters: vLLM refuses to start, or leaves the feature off without a word.
How to fix: add the flag that the finding names, or take this one out.
When to ignore: when the partner comes from a file or a variable that is not part of the text.
Sources: vllm/entrypoints/openai/cli_args.py (validate_parsed_serve_args), vllm/config/parallel.py, vLLM 0.6 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.engine.editing import set_flag
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity
from trimtab.rules.runner import release


class Need(msgspec.Struct, frozen=True):
    """A flag, what it needs, since and until which version, how bad it is, and whether the partner takes no value."""

    flag: str
    partner: str
    since: str = "0.4"
    until: str = "99"
    severity: Severity = Severity.ERROR
    switch: bool = True


NEEDS = (
    Need("enable-auto-tool-choice", "tool-call-parser", "0.6", switch=False),
    Need("enable-reasoning", "reasoning-parser", "0.7", "0.8", switch=False),
    Need("enable-log-outputs", "enable-log-requests", "0.11"),
    Need("enable-eplb", "enable-expert-parallel", "0.10"),
    Need("numa-bind-nodes", "numa-bind", "0.26"),
    Need("numa-bind-cpus", "numa-bind", "0.26"),
    Need("lora-modules", "enable-lora"),
    Need("max-loras", "enable-lora", severity=Severity.WARNING),
    Need("max-lora-rank", "enable-lora", severity=Severity.WARNING),
    Need("max-cpu-loras", "enable-lora", severity=Severity.WARNING),
    Need("fully-sharded-loras", "enable-lora", severity=Severity.WARNING),
    Need("tool-call-parser", "enable-auto-tool-choice", "0.6", severity=Severity.INFO),
)


def check(context: CommandContext) -> Iterator[Finding]:
    if not words.serves(context) or not words.is_complete(context) or context.command.all("config"):
        return
    minor = release(context.version)[:2]
    for need in NEEDS:
        use = context.command.last(need.flag)
        if use is None or use.negated or context.flags.find(need.flag) is None:
            continue
        if context.command.has(need.partner) or not release(need.since) <= minor <= release(need.until):
            continue
        edits = set_flag(context.command, need.partner, None) if need.switch else []
        yield Finding(
            msg(
                "{flag} needs --{partner} beside it in {vllm}",
                zh="在 {vllm} 中 {flag} 需要与 --{partner} 一起使用",
                flag=use.spelling,
                partner=need.partner,
                vllm=words.vllm(context),
            ),
            use.span,
            Fix(tuple(edits), Grade.UNSAFE) if edits else None,
            severity=need.severity,
        )


RULE = Rule(
    code="CMD011",
    name="flag-without-its-partner",
    severity=Severity.ERROR,
    summary=msg("A flag that needs another one beside it.", zh="缺少必须一起使用的参数。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/cli_args.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/parallel.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/v1/worker/lora_model_runner_mixin.py",
    ),
    bad=(
        Example("vllm serve m --enable-auto-tool-choice\n", at="--enable-auto-tool-choice", vllm="0.26"),
        Example(
            "vllm serve m --max-loras 4\n",
            at="--max-loras 4",
            fixed="vllm serve m --max-loras 4 --enable-lora\n",
            vllm="0.26",
        ),
        Example(
            "vllm serve m --enable-eplb -tp 8\n",
            at="--enable-eplb",
            fixed="vllm serve m --enable-eplb -tp 8 --enable-expert-parallel\n",
            vllm="0.26",
        ),
    ),
    good=(
        Example("vllm serve m --enable-auto-tool-choice --tool-call-parser hermes\n", vllm="0.26"),
        Example("vllm serve m --enable-auto-tool-choice $MORE\n", vllm="0.26"),
        Example("vllm serve m --config more.yaml --max-loras 4\n", vllm="0.26"),
    ),
)
