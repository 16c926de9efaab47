"""A dotted argument that this version, or this flag, does not take.

What it does: checks that the version reads `--flag.key value`, and that the flag holds JSON.
Why it matters: vLLM does not recognise the argument and stops.
How to fix: write the whole as JSON, or take vLLM 0.9 or newer.
When to ignore: never; the parser stops there.
Sources: vllm/utils/argparse_utils.py (create_nested_dict), vLLM 0.26; absent from vllm/utils.py of vLLM 0.8.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

STRUCTURED = ("json", "json-or-str")


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        if not use.path:
            continue
        if not context.flags.accepts.dotted:
            text = msg(
                "{vllm} does not take {flag}: dotted arguments come with vLLM 0.9; write {name} with JSON",
                zh="{vllm} 不接受 {flag}：带点的参数从 vLLM 0.9 起才有；请用 JSON 写 {name}",
                vllm=words.vllm(context),
                flag=use.spelling,
                name=spec.name,
            )
            yield Finding(text, use.span)
        elif spec.kind not in STRUCTURED:
            text = msg(
                "{name} takes a single value in {vllm} and has no key {key}",
                zh="在 {vllm} 中 {name} 只接受单个值，没有键 {key}",
                name=spec.name,
                vllm=words.vllm(context),
                key=".".join(use.path),
            )
            yield Finding(text, use.span)


RULE = Rule(
    code="CMD020",
    name="dotted-argument-not-understood",
    severity=Severity.ERROR,
    summary=msg("A dotted argument that is not understood.", zh="无法识别的带点参数。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",),
    bad=(
        Example("vllm serve m --compilation-config.level 3\n", at="--compilation-config.level 3", vllm="0.8"),
        Example("vllm serve m --max-model-len.limit 3\n", at="--max-model-len.limit 3", vllm="0.26"),
    ),
    good=(Example("vllm serve m --compilation-config.level 3 -O.mode 3\n", vllm="0.9"),),
)
