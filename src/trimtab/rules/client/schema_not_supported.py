"""The structured-output back end does not do what the schema, regex or grammar asks for.

What it does: reads refusals of response_format, guided_* and structured_outputs.
Why it matters: xgrammar, guidance and outlines each do a part of JSON Schema and of regular expressions; two kinds
    at once are refused.
How to fix: simplify the schema (the text names what is not done), or let the server choose the back end:
    --structured-outputs-config '{"backend": "auto"}'.
When to ignore: never: the request is not served.
Sources: vllm/v1/structured_output/backend_*.py and vllm/sampling_params.py, vLLM 0.8 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"not supported by (?:xgrammar|outlines|guidance|lm-?format-?enforcer|the .{0,20}backend)",
    r"failed to (?:transform|convert|compile) .{0,30}(?:grammar|schema|regex|choices)",
    r"grammar error:|unimplemented keys|invalid (?:json )?(?:grammar|schema)(?: specification)?",
    r"regex uses unsupported|invalid regex|unsupported regex",
    r"only use one kind of|unsupported structured output backend|guided_decoding_backend",
    r"(?:response_format|json_schema|structured_outputs?|guided_\w+).{0,60}(?:not supported|unsupported|must|"
    r"required|invalid|cannot|missing)",
    r"error serializing (?:guided|structured)|schema .{0,60}(?:too complex|unsupported|not supported)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the structured-output back end does not do this schema, regex or grammar",
                zh="结构化输出后端不支持该 schema、正则或语法",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT050",
    name="schema-not-supported",
    severity=Severity.ERROR,
    summary=msg(
        "The structured-output back end does not do what the schema, regex or grammar asks for.",
        zh="结构化输出后端不支持该 schema、正则或语法所用的特性。",
    ),
    check=check,
    cause=Cause.SCHEMA_UNSUPPORTED,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/structured_output/backend_xgrammar.py",),
    bad=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'The provided JSON schema contains features not "
            "supported by xgrammar.'}\n",
        ),
        Example(
            "ValueError: Failed to transform json schema into a grammar: ...\n",
        ),
        Example(
            'ValueError: Grammar error: Unimplemented keys: ["if"]\n',
        ),
    ),
    good=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'temperature must be non-negative, got -1.0.'}\n",
        ),
    ),
)
