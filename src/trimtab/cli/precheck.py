"""What `up` says of a command before it starts: lint's findings; flags that the engine does not have are refused."""

from __future__ import annotations

import sys

from trimtab.cli.installed import present_of, table_of, unknown_to
from trimtab.cli.known import known_model
from trimtab.cli.launch import Launch
from trimtab.cli.settings import lang
from trimtab.errors import UsageError
from trimtab.messages import msg
from trimtab.rules.lint import LintFacts, lint
from trimtab.rules.rule import Severity


def check_before_start(launch: Launch) -> None:
    """Findings on stderr. UsageError when the engine's own parser would refuse a flag: starting it would take longer.

    The first time an engine is checked it is asked for its flags, which takes seconds.
    """
    table = table_of(present_of(launch.engine))
    facts = LintFacts(
        vllm=launch.engine.version,
        installed=lambda version: table,
        model_of=lambda command: known_model(command, None),
    )
    report = lint(launch.command.command_line(), facts=facts).report
    found = [f for f in report.findings if f.severity is not Severity.INFO]
    for finding in found:
        print(f"{finding.rule.code} {finding.rule.name}: {finding.message.text(lang())}", file=sys.stderr)
    unknown = unknown_to(table, launch.command)
    if unknown:
        raise UsageError(
            msg("vLLM {version} does not have {flags}", version=launch.engine.version, flags=", ".join(unknown)),
            hint=msg("Take it out or write it anew: trimtab lint says what to write instead."),
        )
