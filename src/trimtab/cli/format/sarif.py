"""Findings as SARIF 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/), for code-scanning pages."""

from __future__ import annotations

from typing import Any

from trimtab import __version__
from trimtab.cli.format.json import dump
from trimtab.rules.rule import Severity
from trimtab.rules.runner import Report, Reported

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def findings(report: Report, lang: str) -> str:
    """One SARIF log with one run, also when nothing was found."""
    rules = {f.rule.code: f.rule for f in report.findings}
    driver = {
        "name": "trimtab",
        "version": __version__,
        "rules": [
            {
                "id": rule.code,
                "name": rule.name,
                "shortDescription": {"text": rule.summary.text(lang)},
                "defaultConfiguration": {"level": _LEVEL[rule.severity]},
            }
            for rule in rules.values()
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(f, lang) for f in report.findings],
    }
    return dump(
        {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]},
    )


def _result(found: Reported, lang: str) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": found.rule.code,
        "level": _LEVEL[found.severity],
        "message": {"text": found.message.text(lang)},
    }
    if found.file is not None:
        location: dict[str, Any] = {"artifactLocation": {"uri": found.file}}
        if found.line is not None:
            location["region"] = {"startLine": found.line, "startColumn": found.column}
        result["locations"] = [{"physicalLocation": location}]
    return result
