"""Two flags that vLLM does not take together, or of which one silences the other.

What it does: looks for pairs that this version refuses to combine, or of which it ignores one.
Why it matters: vLLM stops while it builds its configuration, or drops a setting without an error.
How to fix: keep the one that is meant.
When to ignore: where one of them is only a default written out.
Sources: vllm/engine/arg_utils.py, vllm/entrypoints/cli/serve.py and cli_args.py, vLLM 0.7 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from trimtab.engine.command import FlagUse
from trimtab.messages import Message, msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity
from trimtab.rules.runner import release

REFUSED = msg("{vllm} refuses {one} together with {other}", zh="{vllm} 不允许同时使用 {one} 和 {other}")
IGNORED = msg("with {one}, {vllm} ignores {other}", zh="有 {one} 时，{vllm} 会忽略 {other}")


class Pair(msgspec.Struct, frozen=True):
    """Two dotted names, the versions (inclusive) in which they do not go together, and what comes of it."""

    one: str
    other: str
    since: str
    until: str = "99"
    text: Message = REFUSED
    severity: Severity = Severity.ERROR


PAIRS = (
    Pair("attention-backend", "attention-config.backend", "0.13"),
    Pair("cudagraph-capture-sizes", "compilation-config.cudagraph_capture_sizes", "0.11"),
    Pair("max-cudagraph-capture-size", "compilation-config.max_cudagraph_capture_size", "0.11"),
    Pair("spec-method", "speculative-config.method", "0.26"),
    Pair("spec-model", "speculative-config.model", "0.26"),
    Pair("spec-tokens", "speculative-config.num_speculative_tokens", "0.26"),
    Pair("enable-auto-tool-choice", "enable-reasoning", "0.7", "0.7"),
    Pair("enable-prompt-embeds", "enable-prompt-adapter", "0.9", "0.9"),
    Pair("data-parallel-hybrid-lb", "data-parallel-external-lb", "0.11"),
    Pair("data-parallel-multi-port-external-lb", "data-parallel-hybrid-lb", "0.26"),
    Pair("data-parallel-multi-port-external-lb", "data-parallel-external-lb", "0.26"),
    Pair("enable-per-request-metrics", "disable-log-stats", "0.26"),
    Pair("enforce-eager", "cudagraph-capture-sizes", "0.11", text=IGNORED, severity=Severity.WARNING),
    Pair("enforce-eager", "max-cudagraph-capture-size", "0.11", text=IGNORED, severity=Severity.WARNING),
    Pair("enforce-eager", "compilation-config.cudagraph_mode", "0.13", text=IGNORED, severity=Severity.WARNING),
    Pair("kv-cache-memory-bytes", "gpu-memory-utilization", "0.10", text=IGNORED, severity=Severity.INFO),
)


def check(context: CommandContext) -> Iterator[Finding]:
    if not words.serves(context):
        return
    minor = release(context.version)[:2]
    for pair in PAIRS:
        if not release(pair.since) <= minor <= release(pair.until):
            continue
        one, other = given(context, pair.one), given(context, pair.other)
        if one is not None and other is not None:
            text = Message(
                pair.text.template,
                {"vllm": words.vllm(context), "one": one.spelling, "other": shown(other, pair.other)},
                pair.text.zh,
            )
            yield Finding(text, other.span, severity=pair.severity)


def given(context: CommandContext, dotted: str) -> FlagUse | None:
    """The use that switches the flag on or sets the key, dotted or within JSON."""
    name, _, key = dotted.partition(".")
    use = context.command.last(dotted)
    if use is None and key and key in words.json_object(context, name):
        use = context.command.last(name)
    return None if use is None or use.negated else use


def shown(use: FlagUse, dotted: str) -> str:
    """The flag, with the key where it stands within JSON."""
    return use.spelling if "." not in dotted or use.path else f"{use.spelling} ({dotted.partition('.')[2]})"


RULE = Rule(
    code="CMD010",
    name="flags-excluding-each-other",
    severity=Severity.ERROR,
    summary=msg("Two flags that do not go together.", zh="两个不能同时使用的参数。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/engine/arg_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/cli/serve.py",
        "https://github.com/vllm-project/vllm/blob/v0.7.3/vllm/entrypoints/openai/cli_args.py",
    ),
    bad=(
        Example(
            'vllm serve m --attention-backend FLASHINFER --attention-config \'{"backend": "FLASH_ATTN"}\'\n',
            at='--attention-config \'{"backend": "FLASH_ATTN"}\'',
            vllm="0.26",
        ),
        Example(
            "vllm serve m --enforce-eager --max-cudagraph-capture-size 64\n",
            at="--max-cudagraph-capture-size 64",
            vllm="0.26",
        ),
        Example(
            "vllm serve m --enable-auto-tool-choice --tool-call-parser hermes --enable-reasoning\n",
            at="--enable-reasoning",
            vllm="0.7",
        ),
    ),
    good=(
        Example("vllm serve m --attention-backend FLASHINFER --attention-config.flash_attn_version 3\n", vllm="0.26"),
        Example("vllm serve m --no-enforce-eager --max-cudagraph-capture-size 64\n", vllm="0.26"),
    ),
)
