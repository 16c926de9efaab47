"""A flag that takes a value stands without one.

What it does: finds flags that this version's parser gives a value, followed by another flag or by nothing.
Why it matters: vLLM stops with "expected one argument" before anything loads.
How to fix: write the value, or take the flag out.
When to ignore: when the value is added before the command runs.
Sources: vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py, vLLM 0.4 to 0.33; vLLM issue 19023.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.command import Origin
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        if use.origin is not Origin.ARGV or use.value is not None or use.negated or use.unknown:
            continue
        if spec.values in ("0", "?", "*") and not use.path:
            continue
        if use.spelling.startswith("-O"):
            continue  # -O3: the value is a part of the word
        if context.command.source.data[use.span.end :].lstrip(b" \t")[:1] in (b"'", b'"', b"`"):
            continue  # a quote that is never closed, which is told of as such
        yield Finding(
            msg(
                "{flag} takes a value and has none",
                zh="{flag} 需要一个值，但没有给出",
                flag=use.spelling,
            ),
            use.span,
            None if use.path else context.remove(use, Grade.UNSAFE),
        )


RULE = Rule(
    code="CMD008",
    name="value-missing",
    severity=Severity.ERROR,
    summary=msg("A flag that takes a value stands without one.", zh="需要值的参数没有给出值。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/engine/arg_utils.py",
        "https://github.com/vllm-project/vllm/issues/19023",
    ),
    bad=(
        Example(
            "vllm serve m --num-gpu-blocks-override --trust-remote-code\n",
            at="--num-gpu-blocks-override",
            fixed="vllm serve m --trust-remote-code\n",
            vllm="0.9",
        ),
        Example("vllm serve m --served-model-name\n", at="--served-model-name", fixed="vllm serve m\n", vllm="0.26"),
    ),
    good=(
        Example("vllm serve m --num-gpu-blocks-override 8\n", vllm="0.9"),
        Example("vllm serve m --enable-chunked-prefill --port 8000\n", vllm="0.6"),
        Example("vllm serve m --hf-token --port 8000\n", vllm="0.26"),
    ),
)
