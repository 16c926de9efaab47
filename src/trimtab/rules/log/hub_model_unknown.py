"""The hub knows no such repository, revision or file.

What it does: looks for the hub's and its library's words for a name, revision or file that does not exist.
Why it matters: a slip in the name costs a start; older versions buried the line under tracebacks of several
    processes.
How to fix: copy the id from the model's page; check --revision and --tokenizer; for a private repository set
    HF_TOKEN, as the hub denies that it exists.
When to ignore: never; there is nothing to load.
Sources: huggingface_hub/utils/_http.py; transformers/utils/hub.py; modelscope/hub/errors.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trimtab.messages import msg
from trimtab.rules.causes import Cause
from trimtab.rules.log import words
from trimtab.rules.log.context import SURE, LogContext
from trimtab.rules.rule import Example, Finding, Rule, Severity

SAYS = (
    (r"(?:^|[\s:'])(?P<model>[\w-][\w.-]*(?:/[\w.-]+)?) is not a local folder and is not a valid model " r"identifier"),
    r"RepositoryNotFoundError|Repository Not Found for url",
    r"RevisionNotFoundError|Revision Not Found|is not a valid git identifier",
    r"\b(?:Remote)?EntryNotFoundError|Entry Not Found for url",
    r"404 Client Error.{0,80}(?:huggingface|hf\.co|hf-mirror|modelscope)",
    r"The request model: .{1,80} does not exist|NotExistError",
)


def check(context: LogContext) -> Iterator[Finding]:
    hit = context.first(*SAYS)
    if hit is None or words.of_draft(context, hit):
        return
    message = msg(
        "the hub knows no such model, revision or file: {said}",
        zh="Hub 上没有这个模型、版本或文件：{said}",
        said=words.said(hit),
    )
    yield context.finding(hit, message, SURE)


RULE = Rule(
    code="LOG213",
    name="hub-model-unknown",
    severity=Severity.ERROR,
    summary=msg("The hub knows no such repository, revision or file.", zh="Hub 上没有这个仓库、版本或文件。"),
    check=check,
    cause=Cause.MODEL_NOT_FOUND,
    sources=("https://github.com/huggingface/huggingface_hub/blob/main/src/huggingface_hub/utils/_http.py",),
    bad=(
        Example(
            "OSError: acme/no-such-model is not a local folder and is not a valid model identifier listed on "
            "'https://huggingface.co/models'\n"
        ),
        Example(
            "huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. Repository Not Found for url: "
            "https://huggingface.co/api/models/org/m.\n"
        ),
    ),
    good=(
        Example(
            "OSError: /models/m is not a local folder and is not a valid model identifier listed on "
            "'https://huggingface.co/models'\n"
        ),
    ),
)
