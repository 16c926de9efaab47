"""A compiled extension was built for another torch.

What it does: looks for undefined symbols in shared objects of vLLM, flash-attn, xformers, torchvision and others, and
    operators that are missing because of them.
Why it matters: a wheel fits one version of torch and one C++ ABI; replacing either breaks it, and vLLM reports it as
    a model that is not supported.
How to fix: install vLLM into a clean environment and let it bring its torch; remove or rebuild the package that the
    path names.
When to ignore: never; the extension cannot be loaded.
Sources: the dynamic linker; torch/_ops.py; vllm/platforms/cuda.py (Failed to import from vllm._C).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.engine.logs import EntryKind
from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"(?P<file>[\w.+-]+\.so)[\w.]*: undefined symbol: (?P<symbol>\S+)",
    r"undefined symbol: (?P<symbol>\S+)",
    r"operator (?P<symbol>\w+::\w+) does not exist",
    (
        r"(?:was|were) (?:built|compiled) (?:for|with|against) (?:PyTorch|torch|CUDA)[^.]*but|[Dd]etected that "
        r"PyTorch and \w+ were compiled with different CUDA"
    ),
)
HINTS = (
    r"No module named '(?P<file>vllm\._\w+)'",
    r"'_OpNamespace' '\w+' object has no attribute '(?P<symbol>\w+)'",
    r"[Cc]ould not load this library: (?P<file>\S+)",
)
WARNED = r"Failed to import from vllm\._(?:moe_)?C.*(?:undefined symbol|Symbol not found): (?P<symbol>[^\s'\")]+)"
"""vLLM goes on without its kernels and fails later, at the first that it needs."""


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if (
        (found is None or found[1] < SURE)
        and (warned := context.first(WARNED, kinds=(EntryKind.WARNING,)))
        and not context.facts.served
    ):
        found = warned, SURE
    if found is None:
        return
    hit, confidence = found
    file = words.group(hit, "file") or words.group(hit, "symbol")
    if file:
        message = msg(
            "a compiled extension does not fit the installed torch: {file}",
            zh="编译扩展与安装的 torch 不符：{file}",
            file=file,
        )
    else:
        message = msg(
            "a compiled extension does not fit the installed torch: {said}",
            zh="编译扩展与安装的 torch 不符：{said}",
            said=words.said(hit),
        )
    yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG311",
    name="extension-of-another-torch",
    severity=Severity.ERROR,
    summary=msg("A compiled extension was built for another torch.", zh="某个编译扩展是为另一个版本的 torch 构建的。"),
    check=check,
    cause=Cause.EXTENSION_ABI_MISMATCH,
    sources=("https://pytorch.org/docs/stable/notes/cpp_compatibility.html",),
    bad=(
        Example(
            "ImportError: /site-packages/vllm/_C.abi3.so: undefined symbol: _ZN5torch3jit17parseSchemaOrNameERKSsb\n"
        ),
        Example("RuntimeError: operator torchvision::nms does not exist\n"),
    ),
    good=(Example("ImportError: libcudart.so.12: cannot open shared object file: No such file or directory\n"),),
)
