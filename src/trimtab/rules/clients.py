"""Judge what a client meets: an endpoint's evidence, or the text of a client's errors. Both end in ranked findings."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trimtab.engine.command import LaunchCommand
from trimtab.engine.evidence import Evidence
from trimtab.rules import registry
from trimtab.rules.client.context import ClientContext
from trimtab.rules.client.statements import read_statements
from trimtab.rules.rule import Subject
from trimtab.rules.runner import Report, Selection, run


def judge_endpoint(evidence: Evidence, selection: Selection | None = None) -> Report:
    """What stands between a client and this endpoint, likeliest first; empty where a client is served."""
    return _judged(ClientContext(evidence), selection)


def judge_text(
    lines: Iterable[str],
    *,
    command: LaunchCommand | None = None,
    vllm: str | None = None,
    selection: Selection | None = None,
) -> Report:
    """What the lines of a client's error, or of a server's access log, tell of failed requests, likeliest first.

    Never raises for what the text holds; takes time linear in it. `command`, `vllm`: of the server, where known.
    """
    return _judged(ClientContext(lines=read_statements(lines), command=command, vllm=vllm), selection)


def recorded(text: str) -> Evidence:
    """Evidence from its JSON."""
    return msgspec.json.decode(text, type=Evidence)


def _judged(context: ClientContext, selection: Selection | None) -> Report:
    report = run(registry.rules(Subject.CLIENT), context, selection)
    ranked = sorted(report.findings, key=lambda f: (f.severity.rank, -(f.confidence or 0.0), f.line or 0, f.rule.code))
    return Report(tuple(ranked), report.not_judged)
