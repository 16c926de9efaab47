"""A flag is given more than once, and only the last one counts.

What it does: finds flags, by all their spellings, that stand twice in one command with different values.
Why it matters: the earlier value is dropped without an error, and a list of names is not joined.
How to fix: keep the one that is meant; write several names after one flag.
When to ignore: when a script appends overrides on purpose.
Sources: vllm/utils/argparse_utils.py (warns of duplicate keys), vLLM 0.26; argparse keeps the last value.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import FlagUse, Origin
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    seen: dict[tuple[str, tuple[str, ...]], list[FlagUse]] = {}
    for use, spec in words.known_flags(context):
        if use.origin is Origin.ARGV and not spec.repeats and not any(p.endswith("+") for p in use.path):
            seen.setdefault((spec.name, use.path), []).append(use)
    for uses in seen.values():
        last = uses[-1]
        for use in uses[:-1]:
            same = (use.value, use.negated) == (last.value, last.negated)
            yield Finding(
                msg(
                    "{flag} is given {count} times; {value} is dropped, the last one counts: {last}",
                    zh="{flag} 给出了 {count} 次；{value} 被丢弃，以最后一个为准：{last}",
                    flag=use.spelling,
                    count=len(uses),
                    value=use.value or use.spelling,
                    last=last.value or last.spelling,
                ),
                use.span,
                severity=Severity.INFO if same else None,
            )


RULE = Rule(
    code="CMD007",
    name="flag-given-twice",
    severity=Severity.WARNING,
    summary=msg("A flag is given more than once; only the last counts.", zh="同一参数给出多次，只有最后一个生效。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",),
    bad=(
        Example("vllm serve m -tp 2 --port 8000 --tensor-parallel-size 4\n", at="-tp 2", vllm="0.26"),
        Example("vllm serve m --served-model-name a --served-model-name b\n", at="--served-model-name a", vllm="0.26"),
    ),
    good=(
        Example("vllm serve m --served-model-name a b\n", vllm="0.26"),
        Example("vllm serve m --compilation-config.mode 3 --compilation-config.backend eager\n", vllm="0.26"),
    ),
)
