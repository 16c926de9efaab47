"""Findings as workflow commands, which GitHub shows as annotations on the changed lines."""

from __future__ import annotations

from trimtab.rules.rule import Severity
from trimtab.rules.runner import Report

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def findings(report: Report, lang: str) -> str:
    """One line a finding; nothing for a clean report."""
    lines = []
    for found in report.findings:
        place = ",".join(
            f"{key}={_property(str(value))}"
            for key, value in (("file", found.file), ("line", found.line), ("col", found.column))
            if value is not None
        )
        title = f"title={_property(f'{found.rule.code} {found.rule.name}')}"
        level = _LEVEL[found.severity]
        lines.append(f"::{level} {place + ',' if place else ''}{title}::{_data(found.message.text(lang))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
