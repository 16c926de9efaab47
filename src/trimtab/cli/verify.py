"""`trimtab verify URL`: judge a running OpenAI-compatible server by four criteria."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import typer

from trimtab.bench.client import Timeouts
from trimtab.bench.endpoint import Target
from trimtab.bench.serverlog import LogSource
from trimtab.bench.verify import Criterion, Verification, verify
from trimtab.cli import options
from trimtab.cli.format.verify import as_json, as_text, progress_line
from trimtab.cli.settings import lang


def run(
    url: str = typer.Argument(help="Base URL of the server, with or without /v1."),
    key: options.Key = None,
    model: options.ServedModel = None,
    context: options.Context = None,
    concurrency: options.Concurrency = None,
    log: options.ServerLog = None,
    timeout: options.FirstTokenTimeout = 300.0,
    allow_unjudged: options.AllowUnjudged = False,
    json: options.AsJson = False,
) -> int:
    """Verify a running server: one request, several at once, a prompt near its context, no OOM."""
    outcome = verify(
        Target(url, key or None, model),
        context=context,
        concurrency=8 if concurrency is None else concurrency,
        log=LogSource(log) if log is not None else None,
        observer=_show if not json else None,
        timeouts=Timeouts(first_s=timeout),
    )
    print(as_json(outcome, lang()) if json else as_text(outcome, lang()))
    return exit_code(outcome, allow_unjudged=allow_unjudged)


def judged(
    url: str, key: str, model: str, context: int | None, concurrency: int, log: str, lang: str
) -> tuple[str, dict[str, bool | None]]:
    """For `up`, apart from its supervisor: the report as a table, and what came of each criterion."""

    def show(name: str, criterion: Criterion | None) -> None:
        with suppress(OSError):  # a terminal that is gone is no reason to stop
            print(progress_line(name, criterion, lang), file=sys.stderr, flush=True)

    target, source = Target(url, key, model), LogSource(Path(log))
    outcome = verify(target, context=context, concurrency=concurrency, log=source, observer=show)
    return as_text(outcome, lang), {criterion.name: criterion.passed for criterion in outcome.criteria}


def exit_code(outcome: Verification, *, allow_unjudged: bool) -> int:
    """0 when all passed; what was not judged counts as passed only if allowed."""
    return 0 if outcome.passed or (outcome.passed is None and allow_unjudged) else 1


def _show(name: str, criterion: Criterion | None) -> None:
    print(progress_line(name, criterion, lang()), file=sys.stderr, flush=True)
