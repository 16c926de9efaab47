"""The engine's transformers is outside the versions that its vLLM asks for.

What it does: compares the installed transformers with the requirements of the installed vLLM.
Why it matters: names that vLLM imports are gone or new: ImportError at the start, configurations and tokenizers
    that cannot be read.
How to fix: install a version within the bounds in the message into the engine's environment.
When to ignore: when a model needs a newer transformers and the start works with it.
Sources: vLLM's requirements/common.txt; the metadata of the installed wheel.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.facts.requirement import admits
from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity


def check(context: HostContext) -> Iterator[Finding]:
    packages = context.record.packages
    wants, has = packages.wants.get("transformers"), packages.transformers
    if wants and has and not admits(wants, has):
        yield Finding(
            msg(
                "transformers {has} is installed; vLLM {vllm} asks for transformers{wants}",
                zh="已安装 transformers {has}；vLLM {vllm} 要求 transformers{wants}",
                has=has,
                vllm=packages.vllm,
                wants=wants,
            )
        )


RULE = Rule(
    code="HST506",
    name="transformers-of-another-version",
    severity=Severity.WARNING,
    summary=msg(
        "The engine's transformers is outside the versions that its vLLM asks for.",
        zh="引擎里的 transformers 超出了其 vLLM 要求的版本范围。",
    ),
    check=check,
    sources=("https://github.com/vllm-project/vllm/blob/v0.33.0/requirements/common.txt",),
    bad=(
        Example(
            '{"packages": {"vllm": "0.16.0", "transformers": "5.2.0", "wants": {"transformers": "<5,>=4.56.0"}}}\n',
        ),
    ),
    good=(
        Example(
            '{"packages": {"vllm": "0.16.0", "transformers": "4.57.1", "wants": {"transformers": "<5,>=4.56.0"}}}\n',
        ),
    ),
)
