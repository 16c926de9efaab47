"""`trimtab report`: all that a bug report needs of one server in one file, without its secrets and private names."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from trimtab.cli import options
from trimtab.cli.format.report import report_markdown
from trimtab.cli.named import server_named
from trimtab.cli.private import private_of
from trimtab.cli.report_parts import parts_of
from trimtab.cli.settings import lang
from trimtab.engine.redaction import STARS, redact
from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg


def run(
    name: options.ServerName = None,
    output: options.ReportFile = None,
    yes: options.Yes = False,
    lines: options.ReportLines = 200,
) -> int:
    """Print a report of a server; with -o FILE show it, ask, and write it. Secrets and private names are taken out."""
    if yes and output is None:
        raise UsageError(msg("--yes writes no file"), hint=msg("Name the file: trimtab report NAME -o FILE --yes."))
    if output is not None and not yes and not sys.stdin.isatty():
        raise UsageError(
            msg("nobody can be asked here whether {file} may be written", file=output),
            hint=msg("Read it first (trimtab report NAME), then write it with -o FILE --yes."),
        )
    text = report_of(server_named(name), lines)
    if not (yes and output is not None):
        print(text, end="", flush=True)
    hidden = msg("{n} secrets are hidden; read it before you pass it on", n=text.count(STARS)).text(lang())
    print(hidden, file=sys.stderr, flush=True)
    if output is None or (not yes and not _agreed(output)):
        return 0
    _write(output, text)
    print(msg("written to {file}", file=output).text(lang()), file=sys.stderr)
    return 0


def report_of(record: ServerRecord, lines: int) -> str:
    """The report, redacted."""
    title = msg("Report of the server {name}", name=record.name).text(lang())
    made = time.strftime("%Y-%m-%d %H:%M:%S %Z")
    lead = msg(
        "Made by `trimtab report` on {made}. Stars stand for secrets, ~ for home directories, USER, HOST, ADDRESS for "
        "names.",
        made=made,
    )
    text = report_markdown(title, lead.text(lang()), parts_of(record, lines), lang())
    return redact(text, private_of((record.api_key,)))


def _agreed(output: Path) -> bool:
    print(msg("Write this to {file}? [y/N] ", file=output).text(lang()), end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _write(output: Path, text: str) -> None:
    """For its owner alone: what redaction overlooks should not be there for all."""
    try:
        with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise HostError(
            msg("cannot write {file}: {reason}", file=output, reason=error.strerror),
            hint=msg("Name a file in a directory that you may write."),
        ) from error
