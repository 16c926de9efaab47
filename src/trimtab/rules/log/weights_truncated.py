"""A weight file is cut or damaged.

What it does: looks for the readers' words for a file that ends too early or is no such file.
Why it matters: a download that was broken off leaves a file of the right name; it is read only when its turn comes.
How to fix: remove that file (and its entry in the cache) and download it again; compare its size and SHA-256 with the
    hub's.
When to ignore: never; the file cannot be read.
Sources: safetensors/src/tensor.rs; torch/serialization.py and caffe2 PyTorchStreamReader.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"MetadataIncompleteBuffer|InvalidHeader\w*|HeaderTooSmall|InvalidOffset|IncompleteMetadata|"
        r"TensorInvalidInfo"
    ),
    (
        r"incomplete metadata, file not fully covered|header too small|invalid (?:UTF-8|JSON) in header|invalid "
        r"header"
    ),
    r"Error while deserializing header: (?!.*(?:HeaderTooLarge|too large))",
    r"PytorchStreamReader failed",
    (
        r"Unable to load weights from pytorch checkpoint file|unexpected EOF, expected \d+ more bytes|failed "
        r"finding central directory"
    ),
    r"invalid load key, '(?!v')",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg(
            "a weight file is cut or damaged: {said}", zh="权重文件不完整或已损坏：{said}", said=words.said(hit)
        )
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG207",
    name="weights-truncated",
    severity=Severity.ERROR,
    summary=msg("A weight file is cut or damaged.", zh="权重文件不完整或已损坏。"),
    check=check,
    cause=Cause.WEIGHTS_INCOMPLETE,
    sources=("https://github.com/huggingface/safetensors/blob/main/safetensors/src/tensor.rs",),
    bad=(
        Example("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer\n"),
        Example(
            "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata, file "
            "not fully covered\n"
        ),
        Example("RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n"),
    ),
    good=(Example("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n"),),
)
