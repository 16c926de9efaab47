"""LD_LIBRARY_PATH puts libraries of another CUDA before those of the engine.

What it does: reads the CUDA versions in the directories of LD_LIBRARY_PATH and compares them with torch's CUDA.
Why it matters: the loader takes them first: undefined symbols in libnvJitLink or libcublas, or a CUDA that does not
    fit torch.
How to fix: unset LD_LIBRARY_PATH for the start: the engine's wheels bring their own libraries.
When to ignore: when those directories hold the driver's compatibility libraries alone.
Sources: ld.so(8); the nvidia-* wheels that torch depends on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

CUDA = re.compile(r"cuda-(\d+)(?:\.\d+)?(?:/|$)")


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    built = record.packages.cuda
    if built is None or not record.on_gpu:
        return
    for place in record.environ.get("LD_LIBRARY_PATH", "").split(":"):
        found = CUDA.search(place)
        if found is None or "compat" in place or int(found[1]) == built[0]:
            continue
        yield Finding(
            msg(
                "LD_LIBRARY_PATH holds {place}, and torch was built with CUDA {built}: unset it for the start",
                zh="LD_LIBRARY_PATH 含有 {place}，而 torch 使用 CUDA {built} 构建：启动时请取消该变量",
                place=place,
                built=f"{built[0]}.{built[1]}",
            )
        )
        return


RULE = Rule(
    code="HST504",
    name="library-path-of-another-cuda",
    severity=Severity.WARNING,
    summary=msg(
        "LD_LIBRARY_PATH puts libraries of another CUDA before those of the engine.",
        zh="LD_LIBRARY_PATH 把另一个 CUDA 的库排在了引擎的库之前。",
    ),
    check=check,
    sources=("https://man7.org/linux/man-pages/man8/ld.so.8.html",),
    bad=(
        Example(
            '{"environ": {"LD_LIBRARY_PATH": "/usr/local/cuda-11.8/lib64"}, "packages": {"cuda": [12, 8]}}\n',
        ),
    ),
    good=(
        Example(
            '{"environ": {"LD_LIBRARY_PATH": "/usr/local/cuda-12.4/lib64"}, "packages": {"cuda": [12, 8]}}\n',
        ),
        Example(
            '{"environ": {"LD_LIBRARY_PATH": "/usr/lib"}, "packages": {"cuda": [12, 8]}}\n',
        ),
    ),
)
