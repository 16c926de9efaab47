"""A flag's value is refused: its type, range, choice or JSON.

What it does: reads argparse's and pydantic's refusals, which name flag and value, and vLLM's own checks of single
    values.
Why it matters: the start ends before anything loads.
How to fix: give a value that the message allows; JSON for a flag needs single quotes around it in a shell, and double
    quotes inside.
When to ignore: never; the server did not start.
Sources: CPython's argparse; pydantic's error messages; vllm/config/*.py and vllm/engine/arg_utils.py, vLLM 0.4 to
    0.33.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, POSSIBLE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"error: argument (?:-\w+(?: \S+)?/)?--(?P<flag>[\w.-]+)(?:/\S+)*:? (?P<why>(?:invalid|expected|Value|"
        r"Each|argument|Invalid|Unknown|ignored|conflicting).*)"
    ),
    r"error: argument (?:-\w+(?: \S+)?/)?--(?P<flag>[\w.-]+)[^:]*: (?P<why>(?!not allowed with).+)",
    (
        r"validation errors? for (?!(?:Chat)?Generation|AIMessage|Chat\w*Message|Completion|Chat\w*Response)"
        r"(?P<config>\w+) (?P<flag>[a-z]\w*)[\w.,\[\]]* +(?P<why>(?:Input should|"
        r"Unexpected keyword|Extra inputs|Field required|Value error,|String should|Unable to)[^\[]*)"
    ),
    r"(?P<why>GPU memory utilization must be (?:less|greater) than[^.]*\.\d*\.? ?(?:Got [\d.]+)?)",
    r"(?P<why>Unknown (?:dtype|kv cache dtype|pool type|config format|prefix caching hash algorithm)\b.*)",
    (
        r"(?P<why>(?:Unsupported|Unknown) (?:kv_role|ec_role|speculative method|connector|distributed executor "
        r"backend)\b.*|Unrecognized distributed executor backend.*|Unsupported connector type.*)"
    ),
    (
        r"(?P<why>(?:invalid|Invalid) (?:guided_decoding_backend|backend|compilation mode|syntax '[^']*' for "
        r"custom op)\b.*)"
    ),
    r"(?P<why>(?:max_lora_rank|lora_extra_vocab_size|max_(?:cpu_)?loras) \(\d+\) must be .*)",
    (
        r"(?P<why>\S+ is not supported for quantization method .*|The model type \S+ does not support (?:float16|"
        r"bfloat16)\b.*)"
    ),
    r"(?P<why>(?P<flag>[a-z]\w+)='[^']*' is not supported for .*Expected one of .*)",
    r"(?P<why>Invalid middleware .*)",
    r"(?P<why>Port must be between \d+ and \d+)",
    (
        r"(?P<why>(?:max_num_partial_prefills|long_prefill_token_threshold|num_lookahead_slots|"
        r"prompt_lookup_m\w\w|num_scheduler_steps)\b.{0,40}(?:must be|cannot be greater).*)"
    ),
    r"(?P<why>Expected (?:num_speculative_tokens|draft_token_acceptance_method|the batch size).*)",
    (
        r"(?P<why>Unable to read the config file at \S+|Config file must be of a yaml.*|(?:No|More than one) "
        r"config file specified.*)"
    ),
    r"(?P<why>bind\(\): port must be 0-65535|[Pp]ort (?:number )?out of range\S*)",
    (
        r"(?P<why>Each item should be in the form KEY=VALUE|Failed to parse(?: value)?[: ].*|.{0,80}is not a "
        r"valid JSON(?: string)?\b.*|Decimals are not allowed with binary suffixes.*)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None or (words.group(hit, "config") and re.search(ELSEWHERE, hit.entry.text)):
        yield from certificate(context)
        yield from refused_by_a_check(context)
        return
    if PARSER.search(hit.entry.text):
        return
    flag, why = words.group(hit, "flag").replace("_", "-"), hit["why"].partition(" [type=")[0].strip()[:300]
    if flag:
        message = msg("the value of --{flag} is refused: {why}", zh="--{flag} 的值被拒绝：{why}", flag=flag, why=why)
    else:
        message = msg("a value is refused: {why}", zh="参数值被拒绝：{why}", why=why)
    yield context.finding(hit, message, SURE if flag else LIKELY, severity=words.by_request(context))


def certificate(context: LogContext) -> Iterator[Finding]:
    """TLS files that are not there or do not belong together; the error names neither."""
    hit = context.framed(CERTIFICATE)
    if hit is None or not re.match(
        r"FileNotFoundError|PermissionError|ssl\.SSLError|IsADirectoryError", hit.entry.text
    ):
        return
    message = msg(
        "--ssl-keyfile {key} or --ssl-certfile {certificate} cannot be used: {said}",
        zh="--ssl-keyfile {key} 或 --ssl-certfile {certificate} 无法使用：{said}",
        key=context.facts.args.get("ssl_keyfile") or "?",
        certificate=context.facts.args.get("ssl_certfile") or "?",
        said=hit.entry.text[:160],
    )
    yield context.finding(hit, message, SURE)


def refused_by_a_check(context: LogContext) -> Iterator[Finding]:
    """Any other check of a value before the model is loaded: it says what the value must be."""
    hit = words.in_configuration(context, *SHAPES)
    if hit is not None:
        said = words.said(hit)
        yield context.finding(hit, msg("a value is refused: {why}", zh="参数值被拒绝：{why}", why=said), POSSIBLE)


SHAPES = (
    r"(?:must|should|needs to) be (?:one of|in\b|an? |positive|non-negative|at least|between|>|<|\d)",
    r"(?:must|should|needs to) (?:be )?(?:greater|less|larger|smaller)\b",
    r"(?:must|should) (?:be )?(?:divisible by|consistent with|contain|evenly divide)|must evenly divide",
    r"is not a valid (?:choice|value|config field)|[Ii]nvalid (?:value|boolean value|module|compile range|syntax)\b",
    r"[Uu]nknown \w+[\w ]{0,40}:? ?'?[\w.-]+'?\.? |is out of range",
    r"Expect(?:ed)? (?:the )?\w+.{0,60} (?:to be|is >|but got)",
    r"[Vv]alid (?:options|modes|values|modules|kinds|layouts)(?: are)?:",
)
CERTIFICATE = r"in create_ssl_context|load_cert_chain"
PARSER = re.compile(r"argument --(?:tool-call|reasoning)-parser: invalid choice")
ELSEWHERE = r"(?:Value|Assertion) error, "
"""A check written in vLLM, which pydantic reports: it may be any fault at all, and rules of their own read it."""


RULE = Rule(
    code="LOG303",
    name="flag-value-refused",
    severity=Severity.ERROR,
    summary=msg(
        "A flag's value is refused: its type, range, choice or JSON.",
        zh="参数值被拒绝：类型、范围、可选值或 JSON 有误。",
    ),
    check=check,
    cause=Cause.FLAG_VALUE_INVALID,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",),
    bad=(
        Example("main.py serve: error: argument --max-num-seqs: invalid int value: 'many'\n"),
        Example(
            "main.py serve: error: argument --dtype: invalid choice: 'fp12' (choose from auto, bfloat16, float16)\n"
        ),
        Example(
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for CacheConfig\n"
            "gpu_memory_utilization\n"
            "  Input should be less than or equal to 1 [type=less_than_equal, input_value=1.5, "
            "input_type=float]\n"
        ),
        Example("main.py serve: error: argument --api-key: expected at least one argument\n"),
        Example("ValueError: GPU memory utilization must be less than 1.0. Got 1.5.\n"),
    ),
    good=(
        Example(
            "api_server.py: error: argument --tool-call-parser: invalid choice: 'llama3_json' (choose from "
            "'mistral', 'hermes')\n"
        ),
    ),
)
