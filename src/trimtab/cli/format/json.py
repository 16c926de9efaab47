"""Findings as JSON, schema `trimtab.findings/1`: printed even when nothing was found."""

from __future__ import annotations

from typing import Any

import msgspec

from trimtab.rules.rule import Grade
from trimtab.rules.runner import Report, Reported

FINDINGS_SCHEMA = "trimtab.findings/1"


def findings(report: Report, lang: str, vllm: str | None) -> str:
    """One JSON object; messages in `lang`, codes and keys never translated."""
    return dump(findings_value(report, lang, vllm))


def findings_value(report: Report, lang: str, vllm: str | None) -> dict[str, Any]:
    """The same as a value, for reports that hold findings."""
    return {
        "schema": FINDINGS_SCHEMA,
        "vllm": vllm,
        "findings": [_finding(f, lang) for f in report.findings],
        "not_judged": [{"code": n.rule.code, "needs": n.needs.value} for n in report.not_judged],
    }


def dump(value: Any) -> str:
    """Indented JSON with a newline at its end."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def _finding(found: Reported, lang: str) -> dict[str, Any]:
    return {
        "code": found.rule.code,
        "name": found.rule.name,
        "severity": found.severity.value,
        "message": found.message.text(lang),
        "file": found.file,
        "line": found.line,
        "column": found.column,
        "span": [found.span.start, found.span.end] if found.span else None,
        "fix": _fix(found),
        "url": found.rule.url,
        "evidence": list(found.evidence),
        "confidence": found.confidence,
    }


def _fix(found: Reported) -> dict[str, Any] | None:
    if found.fix is None:
        return None
    edits = [{"span": [e.span.start, e.span.end], "replacement": e.replacement} for e in found.fix.edits]
    return {"safe": found.fix.grade is Grade.SAFE, "edits": edits}
