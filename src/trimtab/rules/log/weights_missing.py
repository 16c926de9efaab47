"""There are no weight files, or some of them are not there.

What it does: looks for the loader's words for a directory without weights and for a shard of the index that is absent
    or may not be read.
Why it matters: config.json alone is enough to begin; the start ends when the weights are looked for.
How to fix: download the rest (`hf download MODEL`), check that all shards of model.safetensors.index.json are there
    and readable, and that no pattern left them out.
When to ignore: never; there was nothing to load.
Sources: vllm/model_executor/model_loader/default_loader.py and loader.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"Weight files referenced in index but missing|Could not find checkpoint files",
    r"^ValueError: Missing keys .* in loaded",
    r"Cannot find any (?:safetensors )?model weights with `",
    r"No (?:model )?weights found in",
    r"does not appear to have (?:a file|files) named .*(?:safetensors|pytorch_model|\.bin|\.pt\b)",
    (
        r"(?:FileNotFoundError|No such file or directory|PermissionError|Permission "
        r"denied).{0,40}\.(?:safetensors|bin|pt|pth)\b"
    ),
    r"Error no file named .*(?:safetensors|pytorch_model)",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        message = msg("weights are missing: {said}", zh="缺少权重文件：{said}", said=words.said(hit))
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG205",
    name="weights-missing",
    severity=Severity.ERROR,
    summary=msg("There are no weight files, or some of them are not there.", zh="没有权重文件，或缺少其中一部分。"),
    check=check,
    cause=Cause.WEIGHTS_INCOMPLETE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/model_executor/model_loader/default_loader.py",),
    bad=(
        Example("RuntimeError: Cannot find any model weights with `/models/m`\n"),
        Example("FileNotFoundError: No such file or directory: '/models/m/model-00003-of-00006.safetensors'\n"),
    ),
    good=(Example("RuntimeError: Cannot find any model weights\n"),),
)
