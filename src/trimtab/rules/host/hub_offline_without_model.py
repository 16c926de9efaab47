"""The hub may not be asked (HF_HUB_OFFLINE) and the model is not whole in its cache.

What it does: compares HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE with what the cache holds.
Why it matters: vLLM then ends with LocalEntryNotFoundError or a file that it cannot find.
How to fix: unset the variable and fetch the model once, name another cache with HF_HOME, or give the model's
    directory.
When to ignore: never: the files are not there.
Sources: huggingface_hub/constants.py (HF_HUB_OFFLINE).
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.host.context import HostContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def check(context: HostContext) -> Iterator[Finding]:
    record = context.record
    name = next((n for n in OFFLINE if record.environ.get(n, "").upper() in ("1", "ON", "YES", "TRUE")), None)
    if name is not None and record.wanted.from_hub and record.wanted.cached is False:
        disk = record.disk("models")
        yield Finding(
            msg(
                "{model} is not whole in {path} and {name} forbids to fetch it",
                zh="{model} 在 {path} 中不完整，而 {name} 禁止下载",
                model=record.wanted.model,
                path=disk.path if disk else "the cache",
                name=name,
            )
        )


RULE = Rule(
    code="HST207",
    name="hub-offline-without-model",
    severity=Severity.ERROR,
    summary=msg(
        "The hub may not be asked (HF_HUB_OFFLINE) and the model is not whole in its cache.",
        zh="禁止访问 hub（HF_HUB_OFFLINE），而缓存里的模型不完整。",
    ),
    check=check,
    sources=("https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables",),
    bad=(
        Example(
            '{"environ": {"HF_HUB_OFFLINE": "1"}, "wanted": {"model": "org/model", "from_hub": true, "cached": '
            "false}}\n",
        ),
    ),
    good=(
        Example(
            '{"environ": {"HF_HUB_OFFLINE": "1"}, "wanted": {"model": "org/model", "from_hub": true, "cached": '
            "true}}\n",
        ),
        Example(
            '{"environ": {"HF_HUB_OFFLINE": "0"}, "wanted": {"from_hub": true, "cached": false}}\n',
        ),
    ),
)
