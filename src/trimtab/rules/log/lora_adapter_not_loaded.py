"""The adapter is not found, or LoRA is off.

What it does: reads the refusals of an adapter's path, name and files, and of requests for one while LoRA is off.
Why it matters: adapters are read after the model; a wrong path ends a start that took minutes.
How to fix: give the directory that holds adapter_config.json, as the server sees it; start with --enable-lora; a
    request names the adapter by the name given in --lora-modules.
When to ignore: when the adapter was asked for by a client's mistake.
Sources: vllm/lora/worker_manager.py, vllm/entrypoints/openai/models/serving.py, vLLM 0.4 to 0.33.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

ENDS = (r"Loading lora (?P<name>\S+) failed",)
"""What the worker says last, whatever the reason: also of an adapter that does not fit."""
SAYS = (
    r"No adapter found for (?P<name>\S+)",
    r"doesn't contain tensors",
    (
        r"(?:No such file or directory|does not appear to have a file named|Can't find).{0,120}adapter_(?:config|"
        r"model)"
    ),
    r"adapter_(?:config|model)\S*.{0,60}(?:not found|does not exist)",
    (
        r"LoRA is not enabled|[Cc]all to add_lora but LoRA|lora adapter '[^']+' (?:has not been loaded|cannot be "
        r"found)|LoRA adapter \S+ (?:was found but could not be loaded|does not exist)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, ENDS))
    if found is not None:
        hit, confidence = found
        message = msg("the adapter cannot be loaded: {said}", zh="无法加载适配器：{said}", said=words.said(hit))
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG504",
    name="lora-adapter-not-loaded",
    severity=Severity.ERROR,
    summary=msg("The adapter is not found, or LoRA is off.", zh="找不到 LoRA 适配器，或未启用 LoRA。"),
    check=check,
    cause=Cause.LORA_ADAPTER_MISSING,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/lora/worker_manager.py",),
    bad=(
        Example("ValueError: Loading lora a failed: No adapter found for /models/absent-adapter\n"),
        Example("ValueError: /models/a/adapter_model.safetensors doesn't contain tensors\n"),
    ),
    good=(Example("INFO 11-30 03:43:16 [serving.py:1] Loaded new LoRA adapter: name 'a', path '/models/a'\n"),),
)
