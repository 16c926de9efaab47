"""The request holds more images, videos or sounds than the server allows.

What it does: reads the count in the refusal.
Why it matters: --limit-mm-per-prompt bounds the items of one prompt, those in the history too; 1 was the default of
    older releases.
How to fix: raise --limit-mm-per-prompt (JSON from 0.9 on: '{"image": 4}'), or send fewer, also from the history.
When to ignore: never: the request is not served.
Sources: vllm/entrypoints/chat_utils.py and vllm/multimodal/processing.py, vLLM 0.8 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.client.context import SURE, ClientContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

PATTERNS = (
    r"at most (?P<most>\d+) (?P<kind>\w+)(?:\(s\)|s)? (?:may|can) be provided",
    r"only supports at most (?P<most>\d+) (?P<kind>\w+) items",
    r"you (?:set|passed) .{0,20}(?P<most>\d+) (?P<kind>image|video|audio).{0,60}limit|too many (?P<kind2>images|"
    r"videos|audios)",
)


def check(context: ClientContext) -> Iterator[Finding]:
    hit = context.said(*PATTERNS)
    if hit is not None:
        yield context.finding(
            hit,
            msg(
                "at most {most} of {kind} are allowed in one prompt: raise --limit-mm-per-prompt or send fewer",
                zh="一个提示词里最多允许 {most} 个 {kind}：请提高 --limit-mm-per-prompt 或减少数量",
                most=hit["most"] or "?",
                kind=hit["kind"] or "?",
            ),
            SURE,
        )


RULE = Rule(
    code="CLT048",
    name="too-many-media-items",
    severity=Severity.ERROR,
    summary=msg(
        "The request holds more images, videos or sounds than the server allows.",
        zh="请求中的图片、视频或音频多于服务器的允许数量。",
    ),
    check=check,
    cause=Cause.MULTIMODAL_LIMIT,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/multimodal/processing.py",),
    bad=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'At most 1 image(s) may be provided in one "
            "request.'}\n",
        ),
    ),
    good=(
        Example(
            "openai.BadRequestError: Error code: 400 - {'message': 'this is not a multimodal model'}\n",
        ),
    ),
)
