"""A cache or home directory cannot be written by this user.

What it does: reads refused writes below caches and homes, read-only file systems, and a user id that has no entry.
Why it matters: containers run under a random user without a home; ~/.cache then is /.cache. The hub, Triton and
    torch.compile each have a cache of their own.
How to fix: set HOME to a directory that this user may write, or HF_HOME, VLLM_CACHE_ROOT, TRITON_CACHE_DIR and
    TORCHINDUCTOR_CACHE_DIR one by one; mount the volume with the user's id.
When to ignore: when the path is a weight file: then its owner is the matter.
Sources: errno 13 and 30; huggingface_hub/constants.py, torch/_inductor/runtime/cache_dir_utils.py, vllm/envs.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (
        r"(?:PermissionError: |\[Errno 13\] )Permission denied:? '?(?P<path>/[^' ]*(?:cache|\.triton|\.config|"
        r"huggingface|torchinductor|\.nv|home|HOME|vllm|prometheus)[^' ]*)'?"
    ),
    r"\[Errno 30\] Read-only file system(?!: '/(?:psm_|mp-|sem\.))(?:: '(?P<path>[^']*)')?",
    r"problem when trying to write in your cache folder \((?P<path>[^)]+)\)",
    r"PermissionError at (?P<path>\S+) when downloading",
    r"cannot cache function .{0,80}no locator available for file .?(?P<path>/[^' ]*)",
    r"getpwuid\(\): uid not found: (?P<path>\d+)",
    r"(?P<path>/\S*(?:cache|huggingface)\S*) (?:is not writable|cannot be written)",
)
HINTS = (
    (
        r"(?:PermissionError: |\[Errno 13\] )Permission denied:? '?(?P<path>/(?!dev/|proc/|sys/|psm_|mp-|sem\.)(?![^' "
        r"]*\.(?:safetensors|bin|json|gguf)\b)[^' ]+)'?"
    ),
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if found is None:
        return
    hit, confidence = found
    message = msg(
        "a directory that vLLM writes to cannot be written: {path} ({said})",
        zh="vLLM 需要写入的目录不可写：{path}（{said}）",
        path=words.group(hit, "path"),
        said=words.said(hit),
    )
    yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG403",
    name="cache-not-writable",
    severity=Severity.ERROR,
    summary=msg("A cache or home directory cannot be written by this user.", zh="当前用户无法写入缓存或主目录。"),
    check=check,
    cause=Cause.CACHE_NOT_WRITABLE,
    sources=("https://github.com/vllm-project/vllm/blob/v0.26.0/vllm/envs.py",),
    bad=(
        Example("PermissionError: [Errno 13] Permission denied: '/.cache'\n"),
        Example("OSError: [Errno 30] Read-only file system: '/root/.cache/vllm'\n"),
        Example("KeyError: 'getpwuid(): uid not found: 1000660000'\n"),
    ),
    good=(Example("PermissionError: [Errno 13] Permission denied: '/models/m/model.safetensors'\n"),),
)
