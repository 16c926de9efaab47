"""Findings for a terminal: the answer first, the place, the next step; what was not judged comes last."""

from __future__ import annotations

from trimtab.messages import msg
from trimtab.rules.rule import Fact, Grade, Severity
from trimtab.rules.runner import Report, Reported

_COLOUR = {Severity.ERROR: "\x1b[31m", Severity.WARNING: "\x1b[33m", Severity.INFO: "\x1b[36m"}
_PLAIN = "\x1b[0m"
_GIVEN_BY = {
    Fact.VLLM: "--vllm",
    Fact.MODEL: "--model-config",
    Fact.GPU: "--gpu",
    Fact.HOST: msg("--host-memory GIB, or --gpu auto on the host itself"),
    Fact.CHECKPOINT: "--model-config DIR",
}


def findings(report: Report, lang: str, *, colour: bool = False) -> str:
    """Lines of text; never empty."""
    lines = [_one(f, lang, colour) for f in report.findings]
    for fact in dict.fromkeys(note.needs for note in report.not_judged):
        codes = dict.fromkeys(note.rule.code for note in report.not_judged if note.needs is fact)
        line = msg("not judged for lack of the {fact} ({how}): {codes}", fact=fact.value, how=_GIVEN_BY[fact],
                   codes=", ".join(codes))  # fmt: skip
        lines.append(line.text(lang))
    lines.append(_total(report, lang))
    return "\n".join(lines) + "\n"


def _one(found: Reported, lang: str, colour: bool) -> str:
    place = ":".join(str(p) for p in (found.file, found.line, found.column) if p is not None)
    level = f"{_COLOUR[found.severity]}{found.severity}{_PLAIN}" if colour else str(found.severity)
    head = f"{place + ': ' if place else ''}{level} {found.rule.code} {found.rule.name}"
    lines = [head, f"  {found.message.text(lang)}"]
    lines += [f"    {line}" for line in found.evidence]
    if found.fix is not None and found.fix.grade is not Grade.DISPLAY:
        flag = "--fix" if found.fix.grade is Grade.SAFE else "--fix --unsafe"
        lines.append("  -> " + msg("{flag} mends this", flag=flag).text(lang))
    return "\n".join(lines)


def _total(report: Report, lang: str) -> str:
    counts = {s: sum(f.severity is s for f in report.findings) for s in Severity}
    return msg(
        "{errors} errors, {warnings} warnings, {infos} notes; {unjudged} rules could not judge",
        errors=counts[Severity.ERROR],
        warnings=counts[Severity.WARNING],
        infos=counts[Severity.INFO],
        unjudged=len(report.not_judged),
    ).text(lang)
