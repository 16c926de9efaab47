"""Findings as a Markdown table, for a pull request's comment or an issue."""

from __future__ import annotations

from trimtab.messages import msg
from trimtab.rules.runner import Report


def findings(report: Report, lang: str) -> str:
    """A table, or one sentence when nothing was found."""
    if not report.findings:
        return msg("Nothing found.").text(lang) + "\n"
    heads = [msg("place"), msg("severity"), msg("rule"), msg("what is wrong")]
    rows = ["| " + " | ".join(h.text(lang) for h in heads) + " |", "| --- | --- | --- | --- |"]
    for found in report.findings:
        place = f"{found.file or '-'}:{found.line or '-'}"
        rule = f"[{found.rule.code}]({found.rule.url}) {found.rule.name}"
        text = found.message.text(lang).replace("|", "\\|").replace("\n", " ")
        rows.append(f"| {place} | {found.severity} | {rule} | {text} |")
    return "\n".join(rows) + "\n"
