"""The hub refuses the model: gated or private, and no valid token came.

What it does: looks for the hub's and its library's words for a gated repository and for 401 and 403 answers.
Why it matters: some models need their licence accepted on the hub and a token of that account; a model in the cache
    does not help, as its metadata is asked for again.
How to fix: accept the licence on the model's page, set HF_TOKEN for the server (in a container too), or start with
    HF_HUB_OFFLINE=1 when all files are in the cache.
When to ignore: never; no file came.
Sources: huggingface_hub/utils/_http.py (hf_raise_for_status); transformers/utils/hub.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import LIKELY, SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    r"[Cc]annot access gated repo|trying to access a gated repo|GatedRepoError",
    r"Access to model .{1,120} is restricted",
    r"awaiting a review from the repo authors|ask for access",
    r"Invalid (?:username or password|user token|credentials in Authorization header)",
    r"403 Forbidden: .{0,200}(?:gated|token|permission)",
)
HINTS = (r"401 Client Error(?!.*(?:Repository|Repo) ?Not ?Found)",)


def check(context: LogContext) -> Iterator[Finding]:
    found = words.best(context, (SURE, SAYS), (LIKELY, HINTS))
    if found is not None and not (found[1] == LIKELY and context.first(r"Repository Not Found")):
        hit, confidence = found
        message = msg(
            "the hub refuses the model: gated or private, and no valid token came ({said})",
            zh="Hub 拒绝访问该模型：需授权或私有，且没有有效令牌（{said}）",
            said=words.said(hit),
        )
        yield context.finding(hit, message, confidence)


RULE = Rule(
    code="LOG212",
    name="hub-refuses",
    severity=Severity.ERROR,
    summary=msg(
        "The hub refuses the model: gated or private, and no valid token came.",
        zh="Hub 拒绝访问该模型：需授权或私有，且没有有效令牌。",
    ),
    check=check,
    cause=Cause.HUB_GATED,
    sources=("https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/utils/_http.py",),
    bad=(
        Example(
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. (Request ID: Root=1)\n"
            "Cannot access gated repo for url https://huggingface.co/org/m/resolve/main/config.json.\n"
            "Access to model org/m is restricted. You must have access to it and be authenticated to access "
            "it. Please log in.\n"
        ),
        Example(
            "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: "
            "https://huggingface.co/org/m/resolve/main/config.json\n"
        ),
    ),
    good=(
        Example(
            "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. Repository Not Found for url: "
            "https://huggingface.co/api/models/org/m.\n"
        ),
    ),
)
