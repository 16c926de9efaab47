"""A request held more images, videos or sounds than the server allows.

What it does: reads the limit and what it is on from the refusal.
Why it matters: room for the items of one prompt is reserved at the start; older versions allowed one. A conversation
    carries its earlier images along.
How to fix: start with --limit-mm-per-prompt '{"image": N}' (image=N before 0.9), or let the client send fewer.
When to ignore: when the limit is wanted.
Sources: vllm/multimodal/processing.py and registry.py, vllm/entrypoints/chat_utils.py, vLLM 0.5 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"At most (?P<limit>\d+) (?P<what>\w+)\(s\) may be provided in one (?:request|prompt)",
    r"You set (?:or defaulted to )?.{0,60}`--limit-mm-per-prompt`",
    r"only supports at most (?P<limit>\d+) (?P<what>\w+) items",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "more items than --limit-mm-per-prompt allows: {said}",
            zh="超过 --limit-mm-per-prompt 允许的数量：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG508",
    name="more-items-than-allowed",
    severity=Severity.ERROR,
    summary=msg(
        "A request held more images, videos or sounds than the server allows.",
        zh="请求里的图像、视频或音频超过服务器允许的数量。",
    ),
    check=check,
    cause=Cause.MULTIMODAL_LIMIT,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/multimodal/processing.py",),
    bad=(
        Example("ValueError: At most 1 image(s) may be provided in one request.\n"),
        Example(
            "ValueError: You set image=1 (or defaulted to 1) in `--limit-mm-per-prompt`, but found 2 items "
            "in the same prompt.\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [x.py:1] limit_mm_per_prompt={'image': 4}\n"),),
)
