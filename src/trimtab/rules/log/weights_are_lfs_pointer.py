"""A file of the model is a text pointer of Git LFS, not the file itself.

What it does: looks for a header of absurd length in a safetensors file, and for the pointer's own first word where a
    pickle or JSON was awaited.
Why it matters: `git clone` without Git LFS leaves a text of 130 bytes; its first bytes are read as a length of
    exabytes.
How to fix: run `git lfs pull` in the clone, or download with `hf download`; weight files are gigabytes large.
When to ignore: when the file is large and was damaged otherwise.
Sources: safetensors (HeaderTooLarge: above 100 MB); torch/serialization.py (invalid load key 'v').
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"version https://git-lfs\.github\.com",
    r"git-lfs|Git LFS",
)
HINTS = (
    r"HeaderTooLarge|header too large",
    r"invalid load key, 'v'",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if found is None:
        memory = context.framed(READER)
        if memory is None or not memory.entry.text.startswith("MemoryError"):
            return
        found = memory, LIKELY
    hit, confidence = found
    message = msg(
        "a file of the model is a Git LFS pointer, not the file itself: {said}",
        zh="模型的某个文件是 Git LFS 指针而非文件本身：{said}",
        said=hit.entry.text[:200],
    )
    yield context.finding(hit, message, confidence)


READER = r"safe_open|safetensors|_weights_iterator"


RULE = Rule(
    code="LOG206",
    name="weights-are-lfs-pointer",
    severity=Severity.ERROR,
    summary=msg(
        "A file of the model is a text pointer of Git LFS, not the file itself.",
        zh="模型文件是 Git LFS 的文本指针，而不是文件本身。",
    ),
    check=check,
    cause=Cause.WEIGHTS_LFS_POINTER,
    sources=("https://github.com/huggingface/safetensors/blob/main/safetensors/src/tensor.rs",),
    bad=(
        Example("safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge\n"),
        Example("_pickle.UnpicklingError: invalid load key, 'v'.\n"),
    ),
    good=(Example("safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer\n"),),
)
