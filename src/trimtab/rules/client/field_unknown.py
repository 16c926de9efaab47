"""The request holds a field that the server, or the client library, does not take.

What it does: reads refusals of extra fields and of unknown arguments.
Why it matters: vLLM before 0.6.5 refuses every field that it does not know (max_completion_tokens, id in messages);
    client libraries refuse what belongs into extra_body.
How to fix: leave the field out, update the server, or pass vLLM's own fields as extra_body={...} of openai-python;
    LiteLLM: drop_params.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/openai/protocol.py (OpenAIBaseModel, extra fields), vLLM 0.6.4 and 0.6.6; pydantic's
    extra_forbidden; openai-python (extra_body).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"extra_forbidden.{0,40}loc['\"]?: ?[\[(](?P<field>[^\])]+)",
    r"extra_forbidden|extra (?:inputs|fields) (?:are )?not permitted",
    r"(?:create|parse|stream|request)\(\) got an unexpected keyword argument ['\"](?P<field>[^'\"]+)",
    r"unrecogni[sz]ed request argument(?: supplied)?:? ?(?P<field>\w+)?",
    r"(?:unknown|unsupported|unexpected) (?:parameter|field|argument):? ['\"`]?(?P<field>\w+)",
    r"(?:parameters?|fields?) (?:is|are) not supported by .{0,60}?: ?\{?(?P<field>[^}]+)",
    r"UnsupportedParamsError|does not support parameters: (?P<field>[^,]+)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "the field {field} is not taken: leave it out, or give it where the server's release takes it",
                zh="不接受字段 {field}：请去掉它，或按服务器版本的方式传递",
                field=hit["field"] or "?",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT042",
    name="field-unknown",
    severity=Severity.ERROR,
    summary=msg(
        "The request holds a field that the server, or the client library, does not take.",
        zh="请求中有服务器或客户端库不接受的字段。",
    ),
    check=check,
    cause=Cause.UNKNOWN_FIELD,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.6.6/vllm/entrypoints/openai/protocol.py",
        "https://docs.pydantic.dev/latest/errors/validation_errors/#extra_forbidden",
    ),
    bad=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': \"[{'type': 'extra_forbidden', 'loc': ('body', "
            "'max_completion_tokens'), 'msg': 'Extra inputs are not permitted'}]\"}\n",
        ),
        Example(
            "TypeError: Completions.create() got an unexpected keyword argument 'guided_json'\n",
        ),
    ),
    good=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': \"[{'type': 'missing', 'loc': ('body', "
            "'messages'), 'msg': 'Field required'}]\"}\n",
        ),
    ),
)
