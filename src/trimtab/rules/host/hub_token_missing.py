"""The model is gated and no hub token is there.

What it does: asks the hub whether the model is gated, and looks for a token in HF_TOKEN and in the file of hf auth
    login.
Why it matters: the hub answers 401 for each of its files.
How to fix: ask for access on the model's page, then set HF_TOKEN or run hf auth login.
When to ignore: when the model is whole in the cache.
Sources: Hugging Face documentation on gated models; the hub's API (/api/models/ID, gated).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    if record.wanted.gated and record.token is None and not record.wanted.cached:
        yield Finding(
            msg(
                "{model} is gated and no hub token is set: ask for access on its page, then set HF_TOKEN",
                zh="{model} 受限访问，而没有设置 hub 令牌：请先在其页面申请访问，再设置 HF_TOKEN",
                model=record.wanted.model,
            )
        )


RULE = Rule(
    code="HST209",
    name="hub-token-missing",
    severity=Severity.ERROR,
    summary=msg(
        "The model is gated and no hub token is there.",
        zh="模型受限访问，而本机没有 hub 令牌。",
    ),
    check=check,
    sources=("https://huggingface.co/docs/hub/models-gated",),
    bad=(
        Example(
            '{"wanted": {"model": "org/model", "from_hub": true, "gated": true, "cached": false}}\n',
        ),
    ),
    good=(
        Example(
            '{"wanted": {"model": "org/model", "gated": true}, "token": {"found": "HF_TOKEN", "length": 37}}\n',
        ),
        Example(
            '{"wanted": {"model": "org/model", "gated": false}}\n',
        ),
    ),
)
