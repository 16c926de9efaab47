"""A key in a flag's JSON that this version's configuration does not have.

What it does: compares the keys, in JSON or dotted, with the fields of the configuration class behind the flag.
Why it matters: vLLM's configurations forbid keys that they do not know and stop the start.
How to fix: take the key that the finding names, or the one of this version's documentation.
When to ignore: when a plug-in replaces the configuration class.
Sources: vllm/config/utils.py (`extra="forbid"`) and the classes in vllm/config, vLLM 0.20 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from trimtab.messages import msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        if spec.kind != "json" or not spec.keys or use.value is None:
            continue
        value = words.parsed(use.value)
        keys = [use.path[0].rstrip("+")] if use.path else list(value) if isinstance(value, dict) else []
        for key in keys:
            if key in spec.keys or words.is_open(key, False):
                continue
            near = get_close_matches(key, spec.keys, 1, 0.6)
            yield Finding(
                msg(
                    "{flag} has no key {key} in {vllm}; the nearest of its keys: {near}",
                    zh="在 {vllm} 中 {flag} 没有键 {key}；最接近的键：{near}",
                    flag=spec.name,
                    key=key,
                    vllm=words.vllm(context),
                    near=near[0] if near else ", ".join(spec.keys[:8]),
                ),
                use.span,
            )


RULE = Rule(
    code="CMD023",
    name="configuration-key-unknown",
    severity=Severity.ERROR,
    summary=msg("A key that the flag's configuration does not have.", zh="参数的配置中没有这个键。"),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/config/utils.py",),
    bad=(
        Example(
            'vllm serve m --compilation-config \'{"cudagraph_modes": "FULL"}\'\n',
            at='--compilation-config \'{"cudagraph_modes": "FULL"}\'',
            vllm="0.26",
        ),
        Example("vllm serve m --eplb-config.window 100\n", at="--eplb-config.window 100", vllm="0.26"),
    ),
    good=(Example('vllm serve m --compilation-config \'{"cudagraph_mode": "FULL"}\'\n', vllm="0.26"),),
    since="0.20",
)
