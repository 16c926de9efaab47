"""The engine's torch is not the one that its vLLM was built for.

What it does: compares the installed torch with the version in the requirements of the installed vLLM.
Why it matters: vLLM's kernels are linked to one torch: with another they fail with undefined symbols (_C.abi3.so)
    or miss their operators.
How to fix: install the version in the message into the engine's environment, or install the engine anew: trimtab
    engine install.
When to ignore: when vLLM was built from source against the torch that is installed.
Sources: vLLM's requirements/cuda.txt and requirements/cpu.txt (torch is pinned); the metadata of the installed
    wheel.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from trimtab.facts.requirement import admits
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    packages = context.record.packages
    wants, has = packages.wants.get("torch"), packages.torch
    if wants and has and not admits(wants, has):
        yield Finding(
            msg(
                "torch {has} is installed; vLLM {vllm} was built for torch{wants}",
                zh="已安装 torch {has}；vLLM {vllm} 是为 torch{wants} 构建的",
                has=has,
                vllm=packages.vllm,
                wants=wants,
            ),
            severity=Severity.WARNING if _minor(wants) == _minor(has) else None,
        )


def _minor(version: str) -> list[str]:
    """["2", "9"] of "==2.9.1" and "2.9.0+cu128": compiled parts load where only the last number differs."""
    return re.findall(r"\d+", version)[:2]


RULE = Rule(
    code="HST505",
    name="torch-of-another-version",
    severity=Severity.ERROR,
    summary=msg(
        "The engine's torch is not the one that its vLLM was built for.",
        zh="引擎里的 torch 不是其 vLLM 构建时所用的版本。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/requirements/cuda.txt",),
    bad=(
        Example(
            '{"packages": {"vllm": "0.20.0", "torch": "2.9.1", "wants": {"torch": "==2.11.0"}}}\n',
        ),
    ),
    good=(
        Example(
            '{"packages": {"vllm": "0.20.0", "torch": "2.11.0+cu130", "wants": {"torch": "==2.11.0"}}}\n',
        ),
    ),
)
