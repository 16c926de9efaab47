"""The GGUF file itself cannot be used.

What it does: reads the gguf package's and vLLM's refusals of a file, its type of quantisation or a reference to it.
Why it matters: a file that ends early, one of several parts, or a web page saved under its name looks like a model
    until it is read.
How to fix: download the file again; join parts with llama-gguf-split --merge; name one file (REPO/FILE.gguf or
    REPO:QUANTISATION in newer versions).
When to ignore: never; the file was refused.
Sources: gguf/gguf_reader.py; vllm/model_executor/layers/quantization/gguf.py, vLLM 0.5 to 0.23.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"GGUF magic (?:invalid|bytes)|not a (?:valid )?GGUF|invalid GGUF|Sorry, file appears to be version",
    r"Unsupported GGUF quantization type",
    r"is not a valid GG(?:UF|ML)\w+",
    r"Unrecognised GGUF reference",
    r"(?:GGUF|gguf).{0,60}(?:split|shard|multiple files|corrupt|truncated)",
    r"Could not find (?:GGUF file|mm_proj file)|Downloaded GGUF files not found",
    r"Loading a multimodal GGUF model needs",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None:
        framed = context.framed(READER)
        if framed is None or not re.match(
            r"ValueError|IndexError|KeyError|struct\.error|UnicodeDecodeError|OSError", framed.entry.text
        ):
            return
        hit = framed
    message = msg("the GGUF file cannot be used: {said}", zh="GGUF 文件无法使用：{said}", said=hit.entry.text[:240])
    yield context.finding(hit, message, SURE)


READER = r"gguf_reader\.py|GGUFReader\("


RULE = Rule(
    code="LOG502",
    name="gguf-file-unusable",
    severity=Severity.ERROR,
    summary=msg("The GGUF file itself cannot be used.", zh="GGUF 文件本身无法使用。"),
    check=check,
    cause=Cause.GGUF_FILE_UNUSABLE,
    sources=("https://github.com/ggml-org/llama.cpp/blob/master/gguf-py/gguf/gguf_reader.py",),
    bad=(
        Example("ValueError: GGUF magic invalid\n"),
        Example("ValueError: Unsupported GGUF quantization type 31 in layer model.layers.0.\n"),
    ),
    good=(Example("ValueError: GGUF model with architecture deepseek2 is not supported yet.\n"),),
)
