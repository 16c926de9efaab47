"""What `trimtab gateway` prints: findings of its check, and where it serves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from trimtab.gateway.findings import Finding
from trimtab.gateway.secret import Secret
from trimtab.messages import Message, msg

SCHEMA = "trimtab.gateway-check/1"
_SEVERITIES: dict[str, Message] = {"error": msg("error"), "warning": msg("warning")}


def findings_text(file: Path, findings: Sequence[Finding], lang: str) -> str:
    """One finding in two lines, as compilers print them, then how many there are."""
    lines: list[str] = []
    for finding in findings:
        at = f"{file}:{finding.line}:{finding.column}" if finding.line else f"{file}"
        lines.append(f"{at}: {_SEVERITIES[finding.severity].text(lang)}: {finding.message.text(lang)}")
        lines.append(f"  -> {finding.hint.text(lang)}")
    errors = sum(finding.severity == "error" for finding in findings)
    total = msg("{errors} errors, {warnings} warnings", errors=errors, warnings=len(findings) - errors)
    return "\n".join([*lines, total.text(lang)])


def findings_json(file: Path, findings: Sequence[Finding]) -> str:
    """Findings with messages in English."""
    rows = [
        {"line": f.line, "column": f.column, "severity": f.severity, "message": str(f.message), "hint": str(f.hint)}
        for f in findings
    ]
    report = {"schema": SCHEMA, "file": str(file), "findings": rows}
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode()


def serving(url: str, models: Sequence[str], workers: int, lang: str, link: Secret | None = None) -> str:
    """Where the gateway serves, and what; `link`: what opens its console once, where it has one."""
    none = msg("those that back ends list, told once they do").text(lang)
    rows = [
        (msg("base URL"), f"{url}/v1"),
        (msg("models"), ", ".join(models) or none),
        (msg("workers"), str(workers)),
    ]
    if link is not None:
        rows.append(
            (msg("console (a link for one login, within the hour)"), f"{url}/console/login?link={link.reveal()}")
        )
    return "\n".join(f"  {name.text(lang)}: {value}" for name, value in rows)
