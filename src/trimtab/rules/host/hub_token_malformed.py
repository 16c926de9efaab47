"""The hub token holds a blank, quotes or something that is no token.

What it does: looks at the shape of HF_TOKEN, or of the file that hf auth login wrote; the token itself is not kept.
Why it matters: the hub refuses it with 401 even for models that need no token.
How to fix: copy the token again, without quotes and line breaks, or unset HF_TOKEN and run hf auth login.
When to ignore: with a mirror that gives tokens of another shape.
Sources: huggingface_hub/constants.py (HF_TOKEN, HF_TOKEN_PATH); Hugging Face documentation on user access tokens
    (hf_...).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    token = context.record.token
    if token is None:
        return
    if token.has_blank or token.has_quotes:
        yield Finding(
            msg(
                "the hub token in {found} holds {what}: the hub refuses it; copy it again",
                zh="{found} 中的 hub 令牌含有{what}：hub 会拒绝；请重新复制",
                found=token.found,
                what=msg("quotes", zh="引号") if token.has_quotes else msg("a blank or line break", zh="空白或换行"),
            )
        )
    elif not token.known_prefix:
        yield Finding(
            msg(
                "the hub token in {found} ({n} characters) does not begin with hf_",
                zh="{found} 中的 hub 令牌（{n} 个字符）不以 hf_ 开头",
                found=token.found,
                n=token.length,
            )
        )


RULE = Rule(
    code="HST206",
    name="hub-token-malformed",
    severity=Severity.WARNING,
    summary=msg(
        "The hub token holds a blank, quotes or something that is no token.",
        zh="hub 令牌含有空白、引号，或根本不是令牌。",
    ),
    check=check,
    sources=("https://huggingface.co/docs/hub/security-tokens",),
    bad=(
        Example(
            '{"token": {"found": "HF_TOKEN", "has_quotes": true, "length": 39}}\n',
        ),
        Example(
            '{"token": {"found": "HF_TOKEN", "known_prefix": false, "length": 8}}\n',
        ),
    ),
    good=(
        Example(
            '{"token": {"found": "HF_TOKEN", "length": 37}}\n',
        ),
        Example(
            "{}\n",
        ),
    ),
)
