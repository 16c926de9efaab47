"""The hub cannot be reached, and the cache does not hold the model.

What it does: looks for a connection to the hub that failed, for offline mode, and for a cache without the files.
Why it matters: vLLM asks the hub for the config even of a cached model, unless it is told to be offline.
How to fix: give a directory in place of the id, fill the cache (`hf download`), or set HF_HUB_OFFLINE=0, HF_ENDPOINT,
    VLLM_USE_MODELSCOPE or the proxy variables as your network needs.
When to ignore: when the warning stands alone and the start went on from the cache.
Sources: huggingface_hub/file_download.py; transformers/utils/hub.py; vllm/transformers_utils/repo_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import POSSIBLE, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"(?:download|downloading) or load(?:ing)? vocab file",
    r"We couldn't connect to '[^']+' to load",
    r"outgoing traffic has been disabled|OfflineModeIsEnabled|[Oo]ffline mode is enabled",
    r"Cannot find an appropriate cached snapshot|LocalEntryNotFoundError",
    r"cannot find the (?:requested files|appropriate snapshot).{0,80}(?:cache|local disk)",
    (
        r"(?:huggingface\.co|hf\.co|hf-mirror|modelscope).{0,200}(?:NameResolutionError|Failed to resolve|[Nn]ame "
        r"resolution|Network is unreachable|Connection refused|timed out|ProxyError)"
    ),
    (
        r"(?:MaxRetryError|ConnectionError|ConnectTimeout|ConnectError|ProxyError|SSLError).{0,200}(?:huggingface|"
        r"hf\.co|hf-mirror|modelscope)"
    ),
)
HINTS = (
    (
        r"^(?:httpx|httpcore|requests|urllib3|aiohttp)[\w.]*: .{0,200}(?:[Nn]ame resolution|Name or service|"
        r"unreachable|refused|timed out|Errno -\d)"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (POSSIBLE, HINTS))
    if found is None or context.first(REFUSED):
        return
    hit, confidence = found
    if confidence == POSSIBLE and (hit.entry.phase is not None or not context.facts.starts):
        return  # without a start around it, it is a client's word
    yield context.finding(
        hit,
        msg(
            "the hub cannot be reached and the cache does not hold the model: {said}",
            zh="无法连接 Hub，缓存里也没有该模型：{said}",
            said=words.said(hit),
        ),
        confidence,
    )


REFUSED = r"gated repo|Repository Not Found|RevisionNotFound|Access to model .{1,120} is restricted"


RULE = Rule(
    code="LOG214",
    name="hub-not-reached",
    severity=Severity.ERROR,
    summary=msg(
        "The hub cannot be reached, and the cache does not hold the model.", zh="无法连接 Hub，缓存里也没有该模型。"
    ),
    check=check,
    cause=Cause.HUB_OFFLINE,
    sources=("https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/file_download.py",),
    bad=(
        Example(
            "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find "
            "them in the cached files.\n"
            "Check your internet connection or see how to run the library in offline mode.\n"
        ),
        Example(
            "huggingface_hub.errors.LocalEntryNotFoundError: Cannot find the requested files in the disk "
            "cache and outgoing traffic has been disabled. To enable hf.co look-ups and downloads online, "
            "set 'local_files_only' to False.\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [weight_utils.py:1] Using model weights format ['*.safetensors']\n"),),
)
