"""`trimtab verify URL`: judge a running OpenAI-compatible server, quickly or in depth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import typer

from trimtab.bench.baseline import Saved, compare, read_saved, worse
from trimtab.bench.client import Timeouts
from trimtab.bench.criterion import Criterion
from trimtab.bench.endpoint import Target
from trimtab.bench.inquiry import Limits
from trimtab.bench.serverlog import LogSource
from trimtab.bench.verify import Verification, Wish, chosen, verify, verify_by
from trimtab.cli import options, pages
from trimtab.cli.format.verify import as_json, as_text, progress_line
from trimtab.cli.format.verify_page import page
from trimtab.cli.server_memory import memory_of
from trimtab.cli.settings import dirs, lang
from trimtab.engine.registry import ServerRecord
from trimtab.errors import HostError, UsageError
from trimtab.messages import msg
from trimtab.supervisor import registry

INTERRUPTED = 130


def run(
    url: str = typer.Argument(help="Base URL of the server, with or without /v1."),
    key: options.Key = None,
    model: options.ServedModel = None,
    depth: options.Depth = "quick",
    only: options.OnlyCriteria = None,
    context: options.Context = None,
    concurrency: options.Concurrency = None,
    log: options.ServerLog = None,
    timeout: options.FirstTokenTimeout = 300.0,
    budget: options.MinutesBudget = None,
    bound: options.VerdictBounds = None,
    needle_share: options.NeedleShare = 0.8,
    memory_minutes: options.MemoryMinutes = 2.0,
    allow_unjudged: options.AllowUnjudged = False,
    save: options.SaveBaseline = None,
    against: options.Baselines = None,
    html: options.HtmlFile = None,
    json: options.AsJson = False,
) -> int:
    """Verify a running server: the four criteria, or with --depth full all of them; compare with a baseline."""
    criteria = chosen(only, depth)
    limits = _limits(bound)
    baselines = [_baseline(path) for path in against or ()]
    pages.ready(html)
    pages.require_place(save)
    target = Target(url, key or None, model)
    deep = depth == "full" or only is not None
    record = _local(url) if deep else None
    wish = Wish(
        criteria, context, _planned(concurrency, record), _log(log, record), Timeouts(first_s=timeout), limits,
        memory_of(url, record.devices if record else ()) if "memory" in criteria else None,
        needle_share, memory_minutes, budget * 60 if budget is not None else None,
    )  # fmt: skip
    outcome = verify_by(target, wish, _show if not json else None)
    changes = compare(outcome.criteria, baselines, limits.noise) if baselines else None
    text = as_json(outcome, lang(), changes)
    if save is not None:
        _save(save, text)
    if html is not None:
        pages.write(html, page(outcome, changes), lang())
    print(text if json else as_text(outcome, lang(), changes, baselines))
    if outcome.interrupted:
        return INTERRUPTED
    return 1 if changes is not None and worse(changes) else exit_code(outcome, allow_unjudged=allow_unjudged)


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
    """0 when all passed or do not apply; what was not measured counts as passed only if allowed."""
    return 0 if outcome.passed or (outcome.passed is None and allow_unjudged) else 1


def _show(name: str, criterion: Criterion | None) -> None:
    print(progress_line(name, criterion, lang()), file=sys.stderr, flush=True)


def _local(url: str) -> ServerRecord | None:
    """The record of Trimtab's own server at this port of this host."""
    with suppress(ValueError):
        port, host = urlsplit(url.strip()).port, urlsplit(url.strip()).hostname
        if host in ("127.0.0.1", "localhost", "::1"):
            return next((r for r in registry.live(dirs().state) if r.port == port), None)
    return None


def _planned(concurrency: int | None, record: ServerRecord | None) -> int:
    if concurrency is not None:
        return concurrency
    words = list(record.argv) if record is not None else []
    for at, word in enumerate(words):
        value = word.partition("=")[2] or (words[at + 1] if at + 1 < len(words) else "")
        if word.partition("=")[0] == "--max-num-seqs" and value.isdecimal():
            return max(1, int(value))
    return 8


def _log(log: Path | None, record: ServerRecord | None) -> LogSource | None:
    if log is not None:
        return LogSource(log)
    return LogSource(Path(record.log)) if record is not None and record.log and Path(record.log).is_file() else None


def _limits(texts: Sequence[str] | None) -> Limits:
    """Limits with what `NAME=VALUE` changes; UsageError for a name or a value that there is not."""
    names = {"itl": "itl_ms", "ttft": "ttft_ms", "recall": "recall", "cancel": "cancel_s", "memory": "memory_mib",
             "noise": "noise"}  # fmt: skip
    found: dict[str, float] = {}
    for text in texts or ():
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        share = name in ("recall", "noise")
        if name not in names or not 0 <= number <= (1 if share else 1e9):
            raise UsageError(
                msg("{text!r} is no bound", text=text),
                hint=msg(
                    "Write itl=500 or ttft=2000 (ms), recall=0.8, cancel=5 (s), memory=256 (MiB) or noise=0.1 (share)."
                ),
            )
        found[names[name]] = number
    return Limits(**found)


def _baseline(path: Path) -> Saved:
    try:
        return read_saved(path.read_bytes())
    except OSError as error:
        raise UsageError(
            msg("cannot read the baseline {path}: {reason}", path=path, reason=error.strerror or error),
            hint=msg("Write one first: trimtab verify URL --save FILE."),
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            msg("{path} is no saved verification: {reason}", path=path, reason=str(error)),
            hint=msg("Write one first: trimtab verify URL --save FILE."),
        ) from None


def _save(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        print(text, file=sys.stderr)
        raise HostError(
            msg("cannot write {path}: {reason}", path=path, reason=error.strerror or error),
            hint=msg("The report stands above; name another file with --save."),
        ) from error
