"""A diagnosis for a terminal or as JSON: the cause first, its numbers, the lines that show it, the fixed command."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trimtab.cli.format.before import before_json, before_text
from trimtab.cli.format.json import dump, findings_value
from trimtab.engine.command import LaunchCommand, apply_edits
from trimtab.engine.logs import Log
from trimtab.messages import Message, msg
from trimtab.rules.doctor import Diagnosis
from trimtab.rules.rule import Severity
from trimtab.rules.runner import Reported

if TYPE_CHECKING:
    from trimtab.engine.before import Before
    from trimtab.supervisor.history import Stay

_COLOUR = {Severity.ERROR: "\x1b[31m", Severity.WARNING: "\x1b[33m", Severity.INFO: "\x1b[36m"}
_KEY = re.compile(r"(--(?:api-key|hf-token)[= ])\S+")
_PLAIN = "\x1b[0m"
MOST_OTHERS = 4
"""Less likely causes that a terminal shows; JSON has them all."""


def as_text(
    found: Diagnosis,
    log: Log,
    name: str,
    lang: str,
    *,
    colour: bool = False,
    before: Before | None = None,
    ended: Stay | None = None,
) -> str:
    """Lines of text; never empty. For a server of this host: how it last ended unasked, and the minutes before."""
    findings = found.report.findings
    lines: list[str] = []
    if found.cause is None:
        lines.append(_healthy(log, name, lang) if ended is None else _unasked(name, ended).text(lang))
    for finding in findings[: 1 + MOST_OTHERS]:
        lines += _one(finding, found.command, lang, colour=colour)
    if len(findings) > 1 + MOST_OTHERS:
        lines.append(msg("{n} less likely findings: --json shows them", n=len(findings) - 1 - MOST_OTHERS).text(lang))
    if before is not None:
        lines.append(msg("before: {sentence}", sentence=before.sentence).text(lang))
        lines += [f"  {line}" for line in before_text(before, lang)]
    return "\n".join(lines) + "\n"


def _healthy(log: Log, name: str, lang: str) -> str:
    phase = log.facts.phase or msg("nothing of a start")
    return msg(
        "{name}: no failure in {lines:,} lines; last seen: {phase}", name=name, lines=log.lines, phase=phase
    ).text(lang)


def _unasked(name: str, ended: Stay) -> Message:
    """What its supervisor saw, where the log tells nothing of it: a hang, a signal."""
    from trimtab.cli.format.history import day_and_time

    return msg(
        "{name}: its log tells no failure, its journal does: {state} at {at}: {reason}",
        name=name,
        state=ended.state,
        at=day_and_time(ended.at),
        reason=ended.reason,
    )


def finding_text(found: Reported, command: LaunchCommand | None, lang: str) -> str:
    """One finding as lines."""
    return "\n".join(_one(found, command, lang, colour=False))


def _one(found: Reported, command: LaunchCommand | None, lang: str, *, colour: bool) -> list[str]:
    level = f"{_COLOUR[found.severity]}{found.severity}{_PLAIN}" if colour else str(found.severity)
    sure = f" ({found.confidence:.0%})" if found.confidence is not None else ""
    lines = [f"{level} {found.rule.code} {found.rule.name}{sure}", f"  {found.message.text(lang)}"]
    lines += [f"    {line}" for line in found.evidence]
    fixed = fixed_command(found, command)
    if fixed is not None:
        lines.append("  -> " + msg("start it with: {command}", command=fixed).text(lang))
    lines.append("  -> " + msg("more: trimtab explain {code}", code=found.rule.code).text(lang))
    return lines


def fixed_command(found: Reported, command: LaunchCommand | None) -> str | None:
    """The launch as one shell line after the finding's fix; None where it has none."""
    if found.fix is None or command is None:
        return None
    after = apply_edits(command.source.text, found.fix.edits)
    return _KEY.sub(r"\1***", after.strip())


def as_json(
    found: Diagnosis, log: Log, name: str, lang: str, before: Before | None = None, ended: Stay | None = None
) -> str:
    """Schema trimtab.findings/1, likeliest first; a fix edits `command`, and `after` is what it makes of it."""
    value: dict[str, Any] = findings_value(found.report, lang, found.vllm)
    for shown, finding in zip(value["findings"], found.report.findings, strict=True):
        shown["file"] = name
        shown["cause"] = finding.rule.cause
        if shown["fix"] is not None:
            shown["fix"]["after"] = fixed_command(finding, found.command)
    value["command"] = _KEY.sub(r"\1***", found.command.source.text) if found.command else None
    value["log"] = {"name": name, "lines": log.lines, "phase": log.facts.phase, "served": log.facts.served}
    if ended is not None:
        value["ended"] = {"state": ended.state, "at": ended.at, "reason": ended.reason.text(lang)}
    if before is not None:
        value["before"] = before_json(before, lang)
    return dump(value)
