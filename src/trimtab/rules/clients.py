"""Judge what a client meets: an endpoint's evidence, or the text of a client's errors. Both end in ranked findings."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.engine.evidence import Evidence
from trimtab.engine.logs import Entry, Log
from trimtab.rules import registry
from trimtab.rules.client.context import ClientContext
from trimtab.rules.client.statements import read_statements, statements_of_log
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Report, Reported, Selection, run
from trimtab.rules.triggers import concerned

FALLBACK = "CLT999"
"""The rule that speaks only where no other one names a fault."""
_REFUSED = re.compile(r"^[\w .-]+: error: (?:argument |unrecognized |ambiguous |the following )")
_LAUNCH = re.compile(
    r"vllm/entrypoints/(?:cli|launchers|openai/(?:api_server|cli_args))\b|vllm/utils/argparse|_run_module_as_main"
)


def judge_endpoint(evidence: Evidence, selection: Selection | None = None) -> Report:
    """What stands between a client and this endpoint, likeliest first; empty where a client is served."""
    return _judged(ClientContext(evidence), selection)


def judge_text(lines: Iterable[str], *, selection: Selection | None = None) -> Report:
    """What the lines of a client's error, or of a server's access log, tell of failed requests, likeliest first.

    Never raises for what the text holds; takes time linear in it.
    """
    return _judged(ClientContext(lines=read_statements(lines)), selection)


def judge_log(
    log: Log, *, command_of: Callable[[], LaunchCommand | None] = lambda: None, selection: Selection | None = None
) -> Report:
    """The same of a log that was read already; `command_of` gives the server's launch, where known.

    Where the log tells of a start, it is the server's own: it refused requests and is itself well, so that nothing
    worse than a warning is said; and nothing where it never served.
    """
    facts = log.facts
    own = facts.starts > 0 or facts.version is not None or any(map(_of_a_start, log.entries))
    if own and not facts.served:
        return Report()
    context = ClientContext(lines=statements_of_log(log), command_of=command_of)
    report = _judged(context, selection)
    return Report(tuple(_warned(f) for f in report.findings)) if own else report


def _of_a_start(entry: Entry) -> bool:
    """Whether a start of vLLM wrote this before it told its version: argparse's last word, or a traceback of vLLM's."""
    return _REFUSED.search(entry.text) is not None or any(_LAUNCH.search(frame) for frame in entry.frames)


def _warned(found: Reported) -> Reported:
    return msgspec.structs.replace(found, severity=max(found.severity, Severity.WARNING, key=lambda s: s.rank))


def recorded(text: str) -> Evidence:
    """Evidence from its JSON."""
    return msgspec.json.decode(text, type=Evidence)


def _judged(context: ClientContext, selection: Selection | None) -> Report:
    if not context.probed and not context.lines:
        return Report()  # no rule is loaded for a log that tells of no refused request
    if context.probed:
        rules = registry.rules(Subject.CLIENT)
    else:
        rules = concerned(Subject.CLIENT, context.absent, context.statuses)
    report = run(rules, context, selection)
    ranked = sorted(report.findings, key=lambda f: (f.severity.rank, -(f.confidence or 0.0), f.line or 0, f.rule.code))
    if any(f.severity is Severity.ERROR and f.rule.code != FALLBACK for f in ranked):
        ranked = [f for f in ranked if f.rule.code != FALLBACK]
    return Report(tuple(ranked), report.not_judged)
