"""The value is not of the kind that the flag takes: a number, a size, JSON, or none at all.

What it does: reads each value as this version's parser does, human readable sizes (32k, 32K) and JSON included.
Why it matters: vLLM stops before anything loads; where it does not, it goes on with the default.
How to fix: write the value as the finding says, for example 0.9 for 90% and 32768 where 32K is not understood.
When to ignore: when the value is replaced before the command runs.
Sources: vllm/engine/arg_utils.py and vllm/utils/argparse_utils.py (human_readable_int), vLLM 0.8 to 0.33.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from trimtab.engine.command import FlagUse, Origin
from trimtab.engine.flags import FlagSpec
from trimtab.messages import Message, msg
from trimtab.rules.command import words
from trimtab.rules.command.context import CommandContext
from trimtab.rules.rule import Example, Finding, Fix, Grade, Rule, Severity

INTEGER = re.compile(r"\s*[+-]?\d+(?:_\d+)*\s*")
SIZE = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)([kKmMgGtT])\s*")
BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
PAIRS = re.compile(r"\w+=\d{1,18}(?:,\w+=\d{1,18})*")
# These take a list, or also a bare number (the level, as -O does).
NOT_OBJECTS = ("--allowed-origins", "--allowed-methods", "--allowed-headers", "--compilation-config")
Fault = tuple[Message, str | None, Grade]


def check(context: CommandContext) -> Iterator[Finding]:
    for use, spec in words.known_flags(context):
        if use.path or use.negated or use.value is None or words.is_open(use.value, use.unknown):
            continue
        fault = switch(use, spec) if spec.is_switch else valued(context, use, spec)
        if fault is None:
            continue
        text, value, grade = fault
        yield Finding(text, use.value_span or use.span, mend(context, use, spec, value, grade))


def mend(context: CommandContext, use: FlagUse, spec: FlagSpec, value: str | None, grade: Grade) -> Fix | None:
    """The value as it should be; a switch that is on loses its value."""
    if spec.is_switch:
        return context.set_bare(use) if (use.value or "").lower() == "true" else None
    return context.set_value(use, value, grade) if value is not None else None


def switch(use: FlagUse, spec: FlagSpec) -> Fault | None:
    """A value after a flag that takes none; a config file writes true and false for it."""
    if use.origin is not Origin.ARGV or any(w.item and w.item.listing.pairs for w in use.words):
        return None
    off = f"; {spec.negations[0]} switches it off" if spec.negations else ""
    text = msg(
        "{flag} takes no value, so vLLM does not recognise {value}{off}",
        zh="{flag} 不带值，vLLM 不认识后面的 {value}{off}",
        flag=use.spelling,
        value=use.value,
        off=off,
    )
    return text, None, Grade.SAFE


def valued(context: CommandContext, use: FlagUse, spec: FlagSpec) -> Fault | None:
    """The first value that is not of the flag's kind."""
    for value in use.values:
        if value in ("", "None"):
            continue
        fault = fault_of(context, use, spec, value)
        if fault is not None:
            return fault
    return None


def fault_of(context: CommandContext, use: FlagUse, spec: FlagSpec, value: str) -> Fault | None:
    """What is wrong with one value."""
    if spec.kind in ("int", "size"):
        return whole(context, use, spec, value)
    if spec.kind == "float":
        return fraction(use, value)
    if spec.kind == "bool" and value.lower() not in ("true", "false"):
        text = msg(
            "{flag} takes true or false, not {value}",
            zh="{flag} 只接受 true 或 false，不接受 {value}",
            flag=use.spelling,
            value=value,
        )
        return text, None, Grade.SAFE
    if spec.kind == "name=path" and value.lstrip().startswith(("{", "[")):
        return structured(context, use, spec, value)
    if spec.kind == "name=path" and "=" not in value:
        text = msg(
            "{flag} takes name=path or JSON, not {value}",
            zh="{flag} 的值是 name=path 或 JSON，而不是 {value}",
            flag=use.spelling,
            value=value,
        )
        return text, None, Grade.SAFE
    return structured(context, use, spec, value) if spec.kind == "json" else None


def whole(context: CommandContext, use: FlagUse, spec: FlagSpec, value: str) -> Fault | None:
    """Whole numbers, and sizes with a letter where this version reads them."""
    if INTEGER.fullmatch(value) or (spec.kind == "size" and spec.nullable and value.lower() == "auto"):
        return None
    size = SIZE.fullmatch(value)
    if size is None or (spec.kind == "size" and size[2] in BINARY and "." in size[1]):
        text = msg("{flag} takes a whole number, not {value}", zh="{flag} 要求整数，不是 {value}", flag=use.spelling,
                   value=value)  # fmt: skip
        return text, None, Grade.SAFE
    if spec.kind == "size":
        return None
    number = int(float(size[1]) * (BINARY | DECIMAL)[size[2]])
    text = msg(
        "{flag} takes a plain whole number in {vllm}, not {value}; that would be {number}",
        zh="{vllm} 的 {flag} 只接受普通整数，不接受 {value}；应写作 {number}",
        vllm=words.vllm(context),
        flag=use.spelling,
        value=value,
        number=number,
    )
    return text, str(number), Grade.UNSAFE


def fraction(use: FlagUse, value: str) -> Fault | None:
    """Numbers with a fraction; a percentage is none."""
    try:
        float(value)
    except ValueError:
        text = msg("{flag} takes a number, not {value}", zh="{flag} 要求数字，不是 {value}", flag=use.spelling,
                   value=value)  # fmt: skip
        percent = re.fullmatch(r"(\d+(?:\.\d+)?)%", value)
        return text, f"{float(percent[1]) / 100:g}" if percent else None, Grade.UNSAFE
    return None


def structured(context: CommandContext, use: FlagUse, spec: FlagSpec, value: str) -> Fault | None:
    """JSON, and an object where the flag fills a configuration."""
    pairs = PAIRS.fullmatch(value)
    if pairs and not context.at_least("0.10"):
        return None  # vLLM up to 0.9 also reads key=number pairs
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        items = (item.split("=") for item in value.split(",")) if pairs else ()
        text = msg(
            "{flag} takes JSON, and {value} is none: {reason}",
            zh="{flag} 的值应是 JSON，而 {value} 不是：{reason}",
            flag=use.spelling,
            value=shortened(value),
            reason=error,
        )
        return text, json.dumps({k: int(v) for k, v in items}) if pairs else None, Grade.SAFE
    if isinstance(found, dict) or spec.name in NOT_OBJECTS:
        return None
    text = msg(
        "{flag} takes a JSON object, not {value}",
        zh="{flag} 的值应是 JSON 对象，而不是 {value}",
        flag=use.spelling,
        value=shortened(value),
    )
    return text, None, Grade.SAFE


def shortened(value: str) -> str:
    """Long JSON, cut for a message."""
    return value if len(value) <= 60 else value[:57] + "..."


RULE = Rule(
    code="CMD005",
    name="value-of-wrong-type",
    severity=Severity.ERROR,
    summary=msg("The value is not of the kind that the flag takes.", zh="值的类型与参数要求不符。"),
    check=check,
    sources=(
        "https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/utils/argparse_utils.py",
        "https://github.com/vllm-project/vllm/blob/v0.9.2/vllm/engine/arg_utils.py",
    ),
    bad=(
        Example(
            "vllm serve m --max-model-len 32K\n",
            at="32K",
            fixed="vllm serve m --max-model-len 32768\n",
            vllm="0.7",
        ),
        Example("vllm serve m --max-num-seqs 1k\n", at="1k", fixed="vllm serve m --max-num-seqs 1000\n", vllm="0.26"),
        Example(
            "vllm serve m --enable-prefix-caching true --port 1234\n",
            at="true",
            fixed="vllm serve m --enable-prefix-caching --port 1234\n",
            vllm="0.26",
        ),
        Example(
            "vllm serve m --gpu-memory-utilization 90%\n",
            at="90%",
            fixed="vllm serve m --gpu-memory-utilization 0.9\n",
            vllm="0.26",
        ),
        Example(
            "vllm serve m --limit-mm-per-prompt image=4,video=1\n",
            at="image=4,video=1",
            fixed='vllm serve m --limit-mm-per-prompt \'{"image": 4, "video": 1}\'\n',
            vllm="0.26",
        ),
        Example("vllm serve m --speculative-config \"{'method': 'mtp'}\"\n", at="\"{'method': 'mtp'}\"", vllm="0.26"),
        Example("vllm serve m --kv-transfer-config '[]'\n", at="'[]'", vllm="0.26"),
        Example(
            """vllm serve m --enable-lora --lora-modules '{"name": "a", "path": "/a"'\n""",
            at="""'{"name": "a", "path": "/a"'""",
            vllm="0.10",
        ),
    ),
    good=(
        Example("""vllm serve m --enable-lora --lora-modules '{"name": "a", "path": "/a"}' b=/b\n""", vllm="0.10"),
        Example("vllm serve m --max-model-len 32k --max-num-batched-tokens 8K\n", vllm="0.26"),
        Example("vllm serve m --max-model-len auto\n", vllm="0.26"),
        Example("vllm serve m --limit-mm-per-prompt image=4\n", vllm="0.8"),
        Example("vllm serve m --enable-chunked-prefill false\n", vllm="0.6"),
        Example("vllm serve m --max-num-seqs $SEQS --max-model-len <length>\n", vllm="0.26"),
    ),
)
