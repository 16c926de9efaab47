"""The client asks for a log-in instead of using key and base URL.

What it does: reads the log-in prompts of Claude Code, Codex and others.
Why it matters: the tool did not find base URL and key where it looks for them, and falls back to its maker's
    account.
How to fix: Claude Code: ANTHROPIC_BASE_URL (without /v1) and ANTHROPIC_AUTH_TOKEN, then restart it. Codex: a
    model_providers entry with base_url and env_key in config.toml, and model_provider naming it.
When to ignore: when the maker's service is meant.
Sources: Claude Code documentation (LLM gateway configuration); Codex documentation (config.toml, model_providers).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"please run /login|run `?/login",
    r"codex login|sign in with (?:chatgpt|google|github|your)|select login method",
    r"\boauth\b.{0,60}(?:error|expired|fail|required|revoked|invalid|token)",
    r"not (?:logged|signed) in|(?:log|sign) in to (?:continue|your account)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the tool asks for its maker's log-in: it did not find base URL and key where it looks for them",
                zh="该工具要求登录其厂商账号：它没有在自己的配置处找到 base URL 和密钥",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT036",
    name="login-asked-instead-of-key",
    severity=Severity.ERROR,
    summary=msg(
        "The client asks for a log-in instead of using key and base URL.",
        zh="客户端要求登录，而没有使用密钥和 base URL。",
    ),
    check=check,
    cause=Cause.OAUTH_PROMPT,
    sources=("https://docs.anthropic.com/en/docs/claude-code/llm-gateway",),
    bad=(
        Example(
            "Invalid API key · Please run /login\n",
        ),
        Example(
            "Please sign in with ChatGPT: run codex login\n",
        ),
    ),
    good=(
        Example(
            "openai.AuthenticationError: Error code: 401 - {'error': 'Unauthorized'}\n",
        ),
    ),
)
