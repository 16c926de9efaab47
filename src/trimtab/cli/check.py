"""`trimtab check`: is this host ready to start an engine, with a subject or without; nothing is started."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from trimtab.cli import options
from trimtab.cli.preflight import look_at, packages_of, utilization_of, wanted_of, with_hub
from trimtab.cli.settings import lang
from trimtab.cli.subject import command_of, resolve_subject
from trimtab.engine.command import LaunchCommand
from trimtab.errors import HostError, UsageError
from trimtab.facts.host import HostRecord, Wanted
from trimtab.facts.probe.gpus import Gpu, read_gpus
from trimtab.messages import msg
from trimtab.rules import registry
from trimtab.rules.preflight import preflight, recorded, written
from trimtab.rules.rule import Severity, Subject
from trimtab.rules.runner import Report, Selection

if TYPE_CHECKING:
    from trimtab.supervisor.environments import Engine


def run(
    ctx: typer.Context,
    subject: options.Subject = None,
    engine: options.EngineName = None,
    engine_python: options.EnginePython = None,
    record: options.RecordedHost = None,
    write_record: options.WriteRecord = None,
    select: options.Select = "",
    ignore: options.Ignore = "",
    json: options.AsJson = False,
) -> int:
    """Check this host before a start. Exit code 0: ready; 1: an error or a warning; 2: could not look."""
    selection = Selection(_codes(select), _codes(ignore)).checked(registry.rules(Subject.HOST))
    seen = _read(record) if record is not None else _seen(subject, ctx.obj, engine, engine_python)
    if write_record is not None:
        write_record.write_text(written(seen), encoding="utf-8")
    report = preflight(seen, selection)
    _print(report, seen, as_json=json)
    worst = report.worst()
    return 1 if worst is not None and worst.rank <= Severity.WARNING.rank else 0


def _seen(subject: str | None, rest: list[str] | None, name: str | None, python: Path | None) -> HostRecord:
    command = command_of(resolve_subject(subject, rest)) if subject is not None or rest else None
    gpus = read_gpus().cards
    engine = _engine(name, python, gpus)
    on_cpu = not gpus or (engine is not None and engine.kind == "cpu")
    packages = packages_of(engine, on_cpu=engine is not None and engine.kind == "cpu")
    if command is None:
        return look_at(Wanted(utilization=utilization_of(packages), on_cpu=packages.on_cpu), packages)
    wanted = wanted_of(command, packages, 0 if on_cpu else _cards(command), *_address(command))
    return look_at(with_hub(wanted), packages)


def _engine(name: str | None, python: Path | None, gpus: Sequence[Gpu]) -> Engine | None:
    """The engine that `up` would take; none at all is said on stderr, one that was named must be there."""
    from trimtab.cli.engines import choose_engine

    try:
        return choose_engine(name, python, gpus)
    except HostError as error:
        print(f"{error.message.text(lang())}; {error.hint.text(lang())}", file=sys.stderr)
        return None


def _cards(command: LaunchCommand) -> int:
    from trimtab.plan.ranks import ranks_of

    return ranks_of(command).here or 0


def _address(command: LaunchCommand) -> tuple[str, int | None]:
    """As the command has them; a port that is none is lint's to tell of."""
    text = os.path.expandvars(command.get("port") or "")
    port = int(text) if text.isdecimal() and len(text) < 6 else 0
    return os.path.expandvars(command.get("host") or "127.0.0.1"), port if 0 < port < 65536 else None


def _read(file: Path) -> HostRecord:
    import msgspec

    try:
        return recorded(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise HostError(msg("cannot read {file}: {reason}", file=file, reason=error.strerror or error)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(
            msg("{file} is no record of a host: {reason}", file=file, reason=error),
            hint=msg("trimtab check --write-record FILE writes one."),
        ) from error


def _codes(words: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in words.split(",") if word.strip())


def _print(report: Report, seen: HostRecord, *, as_json: bool) -> None:
    if as_json:
        from trimtab.cli.format import json as json_format

        print(json_format.findings(report, lang(), seen.packages.vllm), end="")
        return
    from trimtab.cli.format import text

    print(text.findings(report, lang(), colour=sys.stdout.isatty()), end="")
