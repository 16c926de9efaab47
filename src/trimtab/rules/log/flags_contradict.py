"""Flags exclude each other, or one lacks its companion.

What it does: reads vLLM's and argparse's checks of flags against each other, which name both.
Why it matters: each flag alone is fine; together the start ends.
How to fix: take one of the flags out, or add the one that the message asks for.
When to ignore: never; the server did not start.
Sources: vllm/engine/arg_utils.py, vllm/config/*.py, vllm/entrypoints/openai/cli_args.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, POSSIBLE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"are mutually exclusive",
    r"error: argument \S+: not allowed with argument",
    (
        r"Error: --[\w-]+ requires --[\w-]+|--[\w-]+ and --[\w-]+ cannot be (?:used|enabled|set) (?:together|at "
        r"the same time)"
    ),
    r"(?:requires|must set|needs) `?--[\w-]+`?(?: to be set| or|\.|,|$)",
    r"--?[\w-]+ can only be set (?:with|when)|can only be (?:set|used) (?:with|when)",
    r"(?<!logprobs )must be (?:set|provided|specified) when|must be enabled to set|You must set \S+ when",
    (
        r"num_speculative_tokens`? (?:must be provided|was (?:not )?provided)|neither `?\w+`? nor `?\w+`? was provided|"
        r"Either \w+ or \w+ must be provided"
    ),
    (
        r"(?:is|are) (?:only (?:supported|applicable) (?:when|with)|incompatible with|not compatible with|not "
        r"supported with)"
    ),
    r"cannot be used (?:with|together)|Cannot set both|cannot both be True",
    r"Hybrid KV cache manager is disabled but failed|[Ff]ailed to (?:promote|convert) .*KV cache specs to one",
    r"not divisible by hash_block_size|is specified in kv_connector_extra_config",
    r"block[ _]sizes? must be divisible by|Invalid prefix_match_unit|must be non-negative and a multiple of",
    r"Multi-module MTP with prefix caching requires|model-declared get_kv_cache_groups cannot be combined",
    r"--[\w-]+ requires engine statistics logging",
    r"limit_mm_per_prompt`? is only supported for multimodal",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS, kinds=(EntryKind.EXCEPTION, EntryKind.ERROR))
    if hit is not None and not re.search(OTHERS, hit.entry.text):
        message = msg("flags contradict each other: {said}", zh="参数互相矛盾：{said}", said=words.said(hit))
        yield context.finding(hit, message, LIKELY, severity=words.by_request(context))
        return
    hit = words.in_configuration(context, *SHAPES)
    if hit is not None and not re.search(OTHERS, hit.entry.text):
        message = msg(
            "this option does not go with the others: {said}",
            zh="该选项与其他选项不能同时使用：{said}",
            said=words.said(hit),
        )
        yield context.finding(hit, message, POSSIBLE)


SHAPES = (
    r"(?:is|are) (?:only|not(?: yet)?|currently not) (?:supported|compatible|applicable|allowed|available|useful)",
    r"(?:does not|doesn't|do not|can't|cannot) (?:yet )?(?:support|be (?:used|combined|enabled|set|both))",
    r"only supports\b|requires \w|[Pp]lease specify",
    r"(?:must|should|can) (?:only )?be (?:set|enabled|provided|specified|present|True|used)",
    r"without (?:also )?(?:setting|enabling)|but \w+ is not enabled|conflicts with",
)
OTHERS = r"VLLM_USE_V1|\bV[01]\b|tool choice requires|[Ss]peculative decoding (?:and|is)|Model Runner V2|NumPy|GPU"
"""Refusals of an engine generation, of requests and of methods, which rules of their own read."""


RULE = Rule(
    code="LOG304",
    name="flags-contradict",
    severity=Severity.ERROR,
    summary=msg("Flags exclude each other, or one lacks its companion.", zh="参数互相排斥，或缺少配套参数。"),
    check=check,
    cause=Cause.FLAGS_CONFLICT,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/engine/arg_utils.py",),
    bad=(
        Example("TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser\n"),
        Example(
            "ValueError: cudagraph_capture_sizes and compilation_config.cudagraph_capture_sizes are mutually "
            "exclusive\n"
        ),
    ),
    good=(Example("ValueError: VLLM_USE_V1=1 is not supported with --task embed.\n"),),
)
