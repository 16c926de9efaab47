"""The server has no adapter of this name.

What it does: reads refusals about an adapter's name.
Why it matters: an adapter is served under the name of --lora-modules NAME=PATH; without --enable-lora there is
    none.
How to fix: start with --enable-lora --lora-modules NAME=PATH, or send a name that /v1/models lists.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/openai/models/serving.py, vLLM 0.33 (LoRA adapters).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"lora (?:adapter|module) ['\"`]?[\w./-]+['\"`]? (?:cannot be found|does not exist|not found|was found but "
    r"could not be loaded)",
    r"no (?:lora )?adapter found",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "no adapter of this name is served: --enable-lora --lora-modules NAME=PATH",
                zh="没有提供这个名字的适配器：--enable-lora --lora-modules NAME=PATH",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT058",
    name="lora-adapter-unknown",
    severity=Severity.ERROR,
    summary=msg(
        "The server has no adapter of this name.",
        zh="服务器没有这个名字的适配器。",
    ),
    check=check,
    cause=Cause.LORA_ADAPTER_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/openai/models/serving.py",),
    bad=(
        Example(
            "The lora adapter 'sql' cannot be found.\n",
        ),
    ),
    good=(
        Example(
            "The model `a` does not exist.\n",
        ),
    ),
)
