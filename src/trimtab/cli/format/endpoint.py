"""What was asked of an endpoint and what came, then the findings; for a terminal or as JSON."""

from __future__ import annotations

from trimtab.cli.format.json import dump, findings_value
from trimtab.engine.evidence import Evidence
from trimtab.messages import msg
from trimtab.rules.rule import Severity
from trimtab.rules.runner import Report, Reported

_COLOUR = {Severity.ERROR: "\x1b[31m", Severity.WARNING: "\x1b[33m", Severity.INFO: "\x1b[36m"}
_PLAIN = "\x1b[0m"


def as_text(seen: Evidence, report: Report, lang: str, *, colour: bool = False) -> str:
    """The findings, likeliest first, below the steps that were taken."""
    lines = [f"{'-' if answer.failed else '+'} {answer.quoted}" for answer in seen.answers]
    if seen.models:
        lines.append(msg("served: {models}", models=", ".join(seen.models[:8])).text(lang))
    if report.worst() is not Severity.ERROR:
        lines.append(msg("a client is served: {url}", url=seen.url).text(lang))
    for finding in report.findings:
        lines += _one(finding, lang, colour=colour)
    return "\n".join(lines) + "\n"


def as_json(seen: Evidence, report: Report, lang: str) -> str:
    """Schema trimtab.findings/1, with what was seen beside the findings."""
    value = findings_value(report, lang, seen.version)
    for shown, finding in zip(value["findings"], report.findings, strict=True):
        shown["file"] = seen.url
        shown["cause"] = finding.rule.cause
    value["endpoint"] = seen
    return dump(value)


def _one(found: Reported, lang: str, *, colour: bool) -> list[str]:
    level = f"{_COLOUR[found.severity]}{found.severity}{_PLAIN}" if colour else str(found.severity)
    sure = f" ({found.confidence:.0%})" if found.confidence is not None else ""
    return [
        f"{level} {found.rule.code} {found.rule.name}{sure}",
        f"  {found.message.text(lang)}",
        *(f"    {line}" for line in found.evidence),
        "  -> " + msg("more: trimtab explain {code}", code=found.rule.code).text(lang),
    ]
