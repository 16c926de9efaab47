"""The hub answers, but the download is cut, slowed or refused for its rate.

What it does: looks for downloads that broke off, wrong sizes, server errors of the hub and its rate limit.
Why it matters: the start ends in the middle of gigabytes; each new start begins again where the cache allows.
How to fix: download beforehand with `hf download`, which resumes; set HF_TOKEN for a higher rate limit; for a slow
    disk or network raise HF_HUB_DOWNLOAD_TIMEOUT.
When to ignore: when a later line says that the download was taken up again.
Sources: huggingface_hub/file_download.py and utils/_http.py; hf_xet.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

CUT = r"ChunkedEncodingError|IncompleteRead\(|InvalidChunkLength"
"""A stream that was cut: the hub's only in the log of a start; without one it is a client's word."""
SAYS = (
    r"429 (?:Client Error|Too Many Requests).{0,200}(?:huggingface|hf\.co|hub|rate limit)",
    (
        r"(?:huggingface|hf\.co|hf-mirror).{0,120}(?:429|5\d\d Server Error)|5\d\d Server "
        r"Error.{0,120}(?:huggingface|hf\.co|hf-mirror)"
    ),
    CUT,
    r"FileIntegrityError|integrity check failed, expected \w+ signature|FileDownloadError",
    r"Consistency check failed: file should be of size",
    r"Data processing error: (?:CAS|File reconstruction)|hf_xet|xet-core",
    r"[Ee]rror (?:occurred )?while downloading (?:using `?hf_transfer|from )",
    r"Error while downloading from https?://",
    r"ReadTimeout.{0,160}(?:huggingface|hf\.co|xethub)|(?:huggingface|hf\.co|xethub).{0,160}Read timed out",
)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS))
    if found is not None:
        hit, confidence = found
        if hit.match.re.pattern == CUT and not context.facts.starts and not hit.entry.frames:
            return
        message = msg("the download from the hub failed: {said}", zh="从 Hub 下载失败：{said}", said=words.said(hit))
        yield context.finding(hit, message, confidence, severity=words.by_request(context))


RULE = Rule(
    code="LOG215",
    name="hub-download-failed",
    severity=Severity.ERROR,
    summary=msg(
        "The hub answers, but the download is cut, slowed or refused for its rate.",
        zh="Hub 有响应，但下载被中断、过慢或被限速。",
    ),
    check=check,
    cause=Cause.HUB_OFFLINE,
    sources=("https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/file_download.py",),
    bad=(
        Example(
            "OSError: Consistency check failed: file should be of size 4976698672 but has size 3221225472 "
            "(model-00001-of-00006.safetensors).\n"
        ),
        Example(
            "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: "
            "https://huggingface.co/api/models/org/m\n"
        ),
    ),
    good=(Example("INFO 11-30 03:43:16 [weight_utils.py:1] Time spent downloading weights for org/m: 12.1 seconds\n"),),
)
