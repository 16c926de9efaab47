"""The value is none of those that the flag takes in this version.

What it does: compares the value with the choices in the version's parser, and with those that vLLM registers itself.
Why it matters: vLLM stops before anything loads; names of newer documentation are the usual reason.
How to fix: take one of the values that the finding names, or a vLLM that has the value.
When to ignore: when a plug-in registers the value.
Sources: vllm/engine/arg_utils.py and vllm/entrypoints/openai/api_server.py (validate_api_server_args), vLLM 0.26;
    LoRA ranks: vllm/config.py (LoRAConfig), 0.4.3 to 0.9.2, vllm/config/lora.py, 0.10.2 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from trimtab.engine.command import FlagUse
from trimtab.engine.flags import FlagSpec
from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Grade, Rule, Severity
from trimtab.rules.runner import release

# Parsers that come from a file of the user's, by the flag that names the file.
PLUGINS = {"--tool-call-parser": "tool-parser-plugin", "--reasoning-parser": "reasoning-parser-plugin"}
# The server refuses these itself where no plug-in gives them; other open choices are the plug-ins' own business.
CHECKED = ("--tool-call-parser", "--reasoning-parser")
CASELESS = ("--attention-backend",)
# https://github.com/vllm-project/vllm/issues/9312: the parsers of 0.6.0 to 0.6.2, fewer than the last 0.6 has.
EARLY_TOOL_PARSERS = ("hermes", "mistral")
# The configuration refuses other ranks, the parser before 0.11.2 does not tell them: (first release, ranks added).
LORA_RANKS = (("0", (8, 16, 32, 64)), ("0.5.5", (128, 256)), ("0.8", (320, 512)), ("0.11.1", (1,)))


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        choices = legal(context, spec)
        if not choices or use.path or use.negated or use.value is None or words.is_open(use.value, use.unknown):
            continue
        plugin = PLUGINS.get(spec.name)
        if plugin is not None and context.command.all(plugin):
            continue
        for value in use.values:
            if not among(spec, choices, value):
                yield judged(context, use, spec, choices, value)
                break


def legal(context: CommandContext, spec: FlagSpec) -> tuple[str, ...]:
    """The choices of this very version."""
    if spec.name == "--tool-call-parser" and (0, 6, 0) <= release(context.version) <= (0, 6, 2):
        return EARLY_TOOL_PARSERS
    if spec.name == "--max-lora-rank" and not spec.choices:
        ranks = (rank for since, added in LORA_RANKS if context.at_least(since) for rank in added)
        return tuple(str(rank) for rank in sorted(ranks))
    return tuple(str(choice) for choice in spec.choices)


def among(spec: FlagSpec, choices: tuple[str, ...], value: str) -> bool:
    """Whether the parser takes the value; a dotted path names a class of the user's."""
    if value in ("", "None") or (spec.open and ("." in value or ":" in value)):
        return True
    if spec.name in CASELESS:
        return value.upper() in {choice.upper() for choice in choices}
    return value in choices or (value.isdecimal() and (value.lstrip("0") or "0") in choices)


def judged(context: CommandContext, use: FlagUse, spec: FlagSpec, choices: tuple[str, ...], value: str) -> Finding:
    """The finding, with the nearest choice where there is one."""
    near = [] if value.isdecimal() else get_close_matches(value, choices, 1, 0.6)
    text = msg(
        "{value} is no value of {flag} in {vllm}; it takes {choices}",
        zh="在 {vllm} 中 {value} 不是 {flag} 的可用值；可用的有 {choices}",
        value=value,
        flag=use.spelling,
        vllm=words.vllm(context),
        choices=", ".join([*near, *(c for c in choices if c not in near)][:12]) + (" ..." if len(choices) > 12 else ""),
    )
    fix = context.set_value(use, near[0], Grade.UNSAFE) if near and len(use.values) == 1 else None
    certain = not spec.open or spec.name in CHECKED
    severity = Severity.WARNING if not certain or context.flags.unknown_newer else None
    return Finding(text, use.value_span or use.span, fix, severity=severity)


RULE = Rule(
    code="CMD006",
    name="value-not-among-choices",
    severity=Severity.ERROR,
    summary=msg("The value is none of those that the flag takes.", zh="值不在该参数的可选值之中。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/entrypoints/openai/api_server.py",
        "https://github.com/vllm-project/vllm/issues/9312",
        "https://github.com/vllm-project/vllm/blob/v0.10.2/vllm/config/lora.py",
    ),
    bad=(
        Example("vllm serve m --dtype bf16\n", at="bf16", vllm="0.26", fixed="vllm serve m --dtype bfloat16\n"),
        Example(
            "vllm serve m --enable-auto-tool-choice --tool-call-parser llama3_json\n", at="llama3_json", vllm="0.6.2"
        ),
        Example(
            "vllm serve m --reasoning-parser deepseek-r1\n",
            at="deepseek-r1",
            fixed="vllm serve m --reasoning-parser deepseek_r1\n",
            vllm="0.26",
        ),
        Example("vllm serve m --enable-lora --max-lora-rank 24\n", at="24", vllm="0.10"),
        Example("vllm serve m --enable-lora --max-lora-rank 512\n", at="512", vllm="0.7"),
    ),
    good=(
        Example("vllm serve m --enable-lora --max-lora-rank 320\n", vllm="0.9.2"),
        Example("vllm serve m --dtype bfloat16 --attention-backend flash_attn\n", vllm="0.26"),
        Example("vllm serve m --tool-call-parser mine --tool-parser-plugin mine.py\n", vllm="0.26"),
        Example("vllm serve m --distributed-executor-backend my.Executor\n", vllm="0.26"),
    ),
)
