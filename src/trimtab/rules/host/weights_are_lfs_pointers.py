"""Files of the model are Git LFS pointers, not the files themselves.

What it does: reads the first bytes of the model's weights and tokenizer.
Why it matters: the repository was cloned without git-lfs: each large file is a text of three lines, and safetensors
    refuses its header.
How to fix: run git lfs install and git lfs pull in the directory, or download the model with hf download.
When to ignore: never: a pointer holds no weights.
Sources: Git LFS specification (pointer files).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    wanted = context.record.wanted
    if wanted.pointers:
        yield Finding(
            msg(
                "{n} files of {model} are Git LFS pointers, first {file}: run git lfs pull there",
                zh="{model} 有 {n} 个文件是 Git LFS 指针，第一个是 {file}：请在该目录运行 git lfs pull",
                n=len(wanted.pointers),
                model=wanted.model,
                file=wanted.pointers[0],
            )
        )


RULE = Rule(
    code="HST205",
    name="weights-are-lfs-pointers",
    severity=Severity.ERROR,
    summary=msg(
        "Files of the model are Git LFS pointers, not the files themselves.",
        zh="模型文件是 Git LFS 指针，而不是文件本身。",
    ),
    check=check,
    sources=("https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md",),
    bad=(
        Example(
            '{"wanted": {"model": "./my-model", "pointers": ["model-00001-of-00002.safetensors", '
            '"model-00002-of-00002.safetensors"]}}\n',
        ),
    ),
    good=(
        Example(
            '{"wanted": {"model": "./my-model"}}\n',
        ),
    ),
)
