"""The client library is of another age than the code or the server.

What it does: reads what client libraries say of names and fields that they lack.
Why it matters: openai-python changed its interface with 1.0; older ones read error bodies in a form that servers no
    longer send, or pass arguments that httpx no longer takes.
How to fix: update the library in the environment that runs the client: pip install -U openai (and httpx beside it).
When to ignore: never: no request is sent, or its error is hidden.
Sources: openai-python's changelog (1.0, 1.55.3); openai 0.28 api_requestor.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import LIKELY, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"KeyError: ['\"]error['\"]|error_data = resp\[",
    r"no longer supported in openai>=1|module 'openai' has no attribute|cannot import name '(?:Async)?OpenAI'",
    r"__init__\(\) got an unexpected keyword argument '(?:proxies|base_url|http_client)'",
    r"'OpenAI' object has no attribute '(?:responses|beta|chat)'|openai\.ChatCompletion",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the client library is too old for the server or for the code that calls it: update it",
                zh="客户端库对服务器或调用它的代码来说太旧：请更新",
            ),
            LIKELY,
        )


RULE = Rule(
    code="CLT052",
    name="client-library-too-old",
    severity=Severity.ERROR,
    summary=msg(
        "The client library is of another age than the code or the server.",
        zh="客户端库与代码或服务器不是同一代。",
    ),
    check=check,
    cause=Cause.CLIENT_TOO_OLD,
    sources=("https://github.com/openai/openai-python/blob/main/CHANGELOG.md",),
    bad=(
        Example(
            "    error_data = resp[\"error\"]\nKeyError: 'error'\n",
        ),
        Example(
            "TypeError: Client.__init__() got an unexpected keyword argument 'proxies'\n",
        ),
    ),
    good=(
        Example(
            "TypeError: Completions.create() got an unexpected keyword argument 'guided_json'\n",
        ),
    ),
)
