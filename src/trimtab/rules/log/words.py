"""What several log rules do alike: the surest hit, the sentence it stands in, what fails one request. Not a rule."""

from __future__ import annotations

import re

from trimtab.engine.logs import EntryKind
from trimtab.rules.log.context import Hit, LogContext
from trimtab.rules.rule import Severity

MOST_SAID = 240
_NAMES = re.compile(r"^(?:[A-Za-z_][\w.]*(?:Error|Exception|Warning|NotFound)\w*: )+")
_REPORT = re.compile(r"^\d+ validation errors? for \w+ +(?:(?:Value|Assertion) error, )?| \[type=\w+,? .*$")
"""What pydantic puts around the sentence of a check."""
_END = re.compile(r"[.!?](?= |$)|; ")


def best(context: LogContext, *grades: tuple[float, tuple[str, ...]]) -> tuple[Hit, float] | None:
    """The first hit of the surest wordings that are found, and how sure they are."""
    for confidence, patterns in grades:
        hit = context.first(*patterns)
        if hit is not None:
            return hit, confidence
    return None


def said(hit: Hit) -> str:
    """The sentence in which the pattern was found, without the exception's name; cut where it is long."""
    text = hit.entry.text
    start = max((e.end() for e in _END.finditer(text, 0, hit.match.start())), default=0)
    end = next((e.start() for e in _END.finditer(text, hit.match.end())), len(text))
    sentence = _REPORT.sub("", _NAMES.sub("", text[start:end].strip()))
    return sentence if len(sentence) <= MOST_SAID else f"{sentence[: MOST_SAID - 3]}..."


def group(hit: Hit, name: str) -> str:
    """A named group's text; empty where this wording has no such group."""
    return hit[name] if name in hit.match.re.groupindex else ""


def unnamed(hit: Hit) -> bool:
    """Whether an exception's words name no other fault, so that the place where it was raised may tell the cause."""
    return _TOLD.search(hit.entry.text) is None


_TOLD = re.compile(
    r"(?i)out ?of ?memory|illegal memory|launch failure|device-side|unspecified|cublas|cudnn|nccl|no kernel image"
    r"|driver|timed out|No module named|cannot import|EngineDead|\[Errno|KeyboardInterrupt|SystemExit|cancel"
)


def by_request(context: LogContext) -> Severity | None:
    """A warning where the server goes on serving: one request was refused, and no more."""
    return Severity.WARNING if context.facts.served and not context.failed else None


_RAISED = re.compile(
    r"(?:\w+\.)*(?:ValueError|NotImplementedError|AssertionError|TypeError|KeyError|AttributeError|IndexError|UnboundLocalError|StopIteration"
    r"|\w*DecodeError"
    r"|\w*ValidationError|RuntimeError(?!: (?:CUDA|Engine|NCCL|Triton|Failed core|.{0,60}memory)))\b"
)
"""What code raises about what it was given: no shortage of memory, no card, no consequence."""
INNERMOST = 4
"""So many frames from the end tell the part of the code that raised."""


def guessed(context: LogContext, said: str, raised_in: str) -> Hit | None:
    """The first error whose words are of a part of vLLM, else the first that was raised there; for a low confidence."""
    for hit in context.find(said, EntryKind.EXCEPTION, EntryKind.ERROR):
        if _RAISED.match(hit.entry.text):
            return hit
    if context.framed(raised_in) is None:
        return None
    search = re.compile(raised_in).search
    for entry in context.errors:
        if _RAISED.match(entry.text):
            for frame in entry.frames[-INNERMOST:]:
                if found := search(frame):
                    return Hit(entry, found)
    return None


def quoted(hit: Hit) -> str:
    """The error's whole text, cut where it is long."""
    text = hit.entry.text
    return text if len(text) <= MOST_SAID else f"{text[: MOST_SAID - 3]}..."


_CONFIGURATION = re.compile(r"engine/arg_utils\.py|vllm/config[/.]|create_engine_config|entrypoints/(?:cli|launchers)/")
_CHECKED = re.compile(
    r"(?:\w+\.)*(?:ValueError|NotImplementedError|AssertionError|TypeError|KeyError|\w*ValidationError)\b"
)


_NAMED = re.compile(
    r"derived max_model_len|tensor[ _]parallel[ _]size|max_num_batched_tokens|quantization (?:method|is)|rope_|LoRA"
    r"|[Mm]odel architectures?|[Rr]epo(?:sitory)? (?:ID|id)|GGUF|multi-?modal|[Ss]peculat|available GPUs|GPU memory"
)
"""What rules of their own read: a shape says less than they do."""


def in_configuration(context: LogContext, *patterns: str) -> Hit | None:
    """The first refusal of these shapes by a check of the configuration: told by its traceback, or before any load."""
    for pattern in patterns:
        for hit in context.find(pattern, EntryKind.EXCEPTION):
            entry = hit.entry
            placed = any(_CONFIGURATION.search(frame) for frame in entry.frames)
            if (
                _NAMED.search(entry.text) is None
                and _CHECKED.match(entry.text)
                and (placed or (not entry.frames and entry.phase is None))
            ):
                return hit
    return None


def draft_of(context: LogContext) -> str:
    """The draft model that the launch names; empty where it names none, or the target itself."""
    found = re.search(r"[\"']model[\"']: *[\"']([^\"']+)", str(context.facts.args.get("speculative_config") or ""))
    return found[1] if found and found[1] != context.facts.model else ""


def of_draft(context: LogContext, hit: Hit) -> bool:
    """Whether the hit speaks of the draft, whose faults are another rule's."""
    draft = draft_of(context)
    return draft != "" and draft in hit.entry.text
